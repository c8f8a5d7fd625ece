#include "tracee.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sentry_prof::judge {
namespace {

constexpr uint64_t kStackLimit_bytes = 64u << 20;  // far more than RLIMIT_STACK's usual 8 MiB

[[noreturn]] void refuse(const char* what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

void pin_to_one_cpu() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  const int now = ::sched_getcpu();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(now < 0 ? 0 : now), &one);
  ::sched_setaffinity(0, sizeof(one), &one);
}

[[noreturn]] void become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  // The same addresses in every run.
  ::personality(ADDR_NO_RANDOMIZE);
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(126);
  ::raise(SIGSTOP);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

Tracee::Tracee(const std::vector<std::string>& command) {
  pin_to_one_cpu();
  start(command);
}

Tracee::~Tracee() {
  if (!has_ended_) kill();
}

void Tracee::start(const std::vector<std::string>& command) {
  pid_ = ::fork();
  if (pid_ < 0) refuse("fork");
  if (pid_ == 0) become(command);
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) refuse("waitpid");
  if (!WIFSTOPPED(status)) throw NotPermitted("ptrace(PTRACE_TRACEME) is refused");
  if (::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) != 0) {
    refuse("PTRACE_SETOPTIONS");
  }
  if (::ptrace(PTRACE_CONT, pid_, nullptr, nullptr) != 0) refuse("PTRACE_CONT");
  if (wait().kind != StopKind::Exec) {
    throw std::runtime_error(fmt::format("cannot run {}", command.at(0)));
  }
}

Stop Tracee::step(int signal) {
  if (::ptrace(PTRACE_SINGLESTEP, pid_, nullptr, static_cast<intptr_t>(signal)) != 0) {
    if (errno != ESRCH) refuse("PTRACE_SINGLESTEP");
  }
  return wait();
}

Stop Tracee::wait() {
  int status = 0;
  if (::waitpid(pid_, &status, __WALL) != pid_) refuse("waitpid");
  if (!WIFSTOPPED(status)) {
    has_ended_ = true;
    return {StopKind::Ended, status};
  }
  if (::ptrace(PTRACE_GETREGS, pid_, nullptr, &registers_) != 0) refuse("PTRACE_GETREGS");
  if (status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXEC << 8))) return {StopKind::Exec};
  if (WSTOPSIG(status) != SIGTRAP) return {StopKind::Signal, WSTOPSIG(status)};
  return {StopKind::Stepped};
}

void Tracee::kill() {
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, __WALL) == pid_ && WIFSTOPPED(status)) {
  }
  has_ended_ = true;
}

size_t Tracee::read(uint64_t address, std::span<std::byte> into) const {
  const iovec local{into.data(), into.size()};
  const iovec remote{reinterpret_cast<void*>(address), into.size()};
  const ssize_t count = ::process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  return count < 0 ? 0 : static_cast<size_t>(count);
}

uint64_t Tracee::read_word(uint64_t address) const {
  uint64_t word = 0;
  read(address, std::as_writable_bytes(std::span(&word, 1)));
  return word;
}

StackRegion Tracee::mapping_of(uint64_t address) const {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid_));
  for (std::string line; std::getline(maps, line);) {
    char* end = nullptr;
    StackRegion range{.low = std::strtoull(line.c_str(), &end, 16)};
    range.high = std::strtoull(end + 1, nullptr, 16);
    const bool is_stack = line.ends_with("[stack]");
    if (is_stack) range.low = range.high - kStackLimit_bytes;
    if (range.holds(address)) return range;
  }
  return {};
}

Instruction CodeCache::at(uint64_t pc) {
  const uint64_t number = pc / kPage_bytes;
  if (number != last_number_) {
    auto& page = pages_[number];
    if (!page) page = std::make_unique<Page>();
    last_ = page.get();
    last_number_ = number;
  }
  Instruction& known = (*last_)[pc % kPage_bytes];
  if (known.kind == InstructionKind::Unknown) {
    std::array<std::byte, 16> code{};  // no instruction is longer than 15
    const size_t size = tracee_.read(pc, code);
    known = instruction_at(Bytes(code).first(size));
  }
  return known;
}

void CodeCache::clear() {
  pages_.clear();
  last_number_ = UINT64_MAX;
  last_ = nullptr;
}

}  // namespace sentry_prof::judge
