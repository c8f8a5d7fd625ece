#include "os/process_memory.h"

#include "os/clock.h"
#include "os/fd.h"
#include "os/process.h"
#include "support/catch2.h"
#include "support/fork_child.h"
#include "support/skips.h"
#include "support/wait_until.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sentry_prof;

namespace {

constexpr size_t kPage = 4096;

// Three pages, of which the last cannot be read.
struct Mapping {
  Mapping()
      : bytes(static_cast<std::byte*>(::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::memset(bytes, 7, 2 * kPage);
    ::mprotect(bytes + 2 * kPage, kPage, PROT_NONE);
  }
  ~Mapping() { ::munmap(bytes, 3 * kPage); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes); }

  std::byte* bytes;
};

// A page that comes when it is told to. Where that is not permitted, it is there already.
class LatePage {
 public:
  LatePage()
      : bytes_(::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        fd_(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC))) {
    uffdio_api api{.api = UFFD_API};
    uffdio_register page{.range = {address(), kPage}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    is_late_ = fd_.is_open() && ::ioctl(fd_.get(), UFFDIO_API, &api) == 0 &&
               ::ioctl(fd_.get(), UFFDIO_REGISTER, &page) == 0;
  }
  ~LatePage() { ::munmap(bytes_, kPage); }

  bool is_late() const { return is_late_; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes_); }
  void come() {
    uffdio_zeropage zeros{.range = {address(), kPage}};
    REQUIRE(::ioctl(fd_.get(), UFFDIO_ZEROPAGE, &zeros) == 0);
  }

 private:
  void* bytes_;
  os::Fd fd_;
  bool is_late_ = false;
};

size_t read_one(os::ProcessMemoryReader& reader, uint64_t address, std::span<std::byte> out) {
  os::MemoryRange range{address, out};
  reader.read(::getpid(), std::span(&range, 1));
  return range.got_bytes;
}

// The same again where the machine is so busy that the reader's thread does not run in time. Leaves
// the reader with the patience that it begins with.
size_t read_at_last(os::ProcessMemoryReader& reader, uint64_t address, std::span<std::byte> out) {
  constexpr double kFullPatience_s =
      os::ProcessMemoryReader::kPatienceShare * (os::ProcessMemoryReader::kMostPatience_ns * 1e-9);
  if (const size_t got = read_one(reader, address, out); got > 0) return got;
  size_t got = 0;
  test::wait_until([&] { return (got = read_one(reader, address, out)) > 0; });
  test::sleep_for(kFullPatience_s);
  return got;
}

}  // namespace

TEST_CASE("Memory of a process is read up to where it cannot be") {
  const Mapping mapping;
  std::vector<std::byte> out(3 * kPage);
  CHECK(os::read_memory(::getpid(), mapping.address() + 100, out) == 2 * kPage - 100);
  CHECK(out[2 * kPage - 101] == std::byte{7});
  CHECK(os::read_memory(::getpid(), mapping.address() + 2 * kPage, out) == 0);
  CHECK(os::read_memory(::getpid(), mapping.address(), std::span(out).first(8)) == 8);
}

TEST_CASE("More pages than one system call takes are read in turns") {
  constexpr size_t kSize = 1200 * kPage;
  std::vector<std::byte> from(kSize, std::byte{3});
  std::vector<std::byte> out(kSize);
  CHECK(os::read_memory(::getpid(), reinterpret_cast<uint64_t>(from.data()), out) == kSize);
  CHECK(out == from);
}

TEST_CASE(
    "No memory is read of addresses that no process has, nor of a process that is not there") {
  std::vector<std::byte> out(kPage);
  CHECK(os::read_memory(::getpid(), UINT64_MAX - 100, out) == 0);
  CHECK(os::read_memory(::getpid(), 8, out) == 0);
  CHECK(os::read_memory(0x7fff'ffff, reinterpret_cast<uint64_t>(out.data()), out) == 0);
}

TEST_CASE("A reader reads as far as there is memory") {
  const Mapping mapping;
  os::ProcessMemoryReader reader;
  std::vector<std::byte> out(3 * kPage);
  CHECK(read_at_last(reader, mapping.address() + 100, out) == 2 * kPage - 100);
  CHECK(out[2 * kPage - 101] == std::byte{7});
  CHECK(read_one(reader, mapping.address() + 2 * kPage, out) == 0);
}

TEST_CASE("A reader does not wait for a page that does not come, but reads again once it has") {
  LatePage page;
  if (!page.is_late()) {
    testing::note_skip("userfaultfd(2) is not permitted here");
    return;
  }
  const Mapping mapping;
  os::ProcessMemoryReader reader;
  std::vector<std::byte> out(8);
  REQUIRE(read_at_last(reader, mapping.address(), out) == out.size());
  // Again where the thread does not begin in time: that is taken back.
  const auto hangs = [&] {
    const uint64_t given_up = reader.reads_given_up();
    const uint64_t begin_ns = os::monotonic_ns();
    CHECK(read_one(reader, page.address(), out) == 0);
    CHECK(os::monotonic_ns() - begin_ns >= os::ProcessMemoryReader::kLongestWait_ns);
    CHECK(reader.reads_given_up() == given_up + 1);
    return read_one(reader, mapping.address(), out) == 0;  // of that process nothing
  };
  bool has_hung = false;
  for (int i = 0; i < 4 && !has_hung; ++i) has_hung = hangs();
  CHECK(has_hung);
  page.come();
  CHECK(read_at_last(reader, page.address(), out) == out.size());
}

namespace {

std::vector<pid_t> own_threads() {
  std::vector<pid_t> tids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    tids.push_back(std::stoi(entry.path().filename().string()));
  return tids;
}

// Stops one thread of this process, by a child that traces it.
class StoppedThread {
 public:
  explicit StoppedThread(pid_t tid) {
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // only descendants are traced with Yama
    std::array<int, 2> told{};
    REQUIRE(::pipe2(told.data(), O_CLOEXEC) == 0);
    pid_ = test::fork_child();
    if (pid_ == 0) {
      const bool is_stopped = ::ptrace(PTRACE_SEIZE, tid, 0, 0) == 0 &&
                              ::ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 &&
                              ::waitpid(tid, nullptr, __WALL) == tid;
      const char answer = is_stopped ? 1 : 0;
      if (::write(told[1], &answer, 1) == 1) ::pause();
      ::_exit(0);
    }
    ::close(told[1]);
    char answer = 0;
    is_stopped_ = ::read(told[0], &answer, 1) == 1 && answer == 1;
    ::close(told[0]);
  }
  // A tracer's end lets go on what it traced.
  ~StoppedThread() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  bool is_stopped() const { return is_stopped_; }

 private:
  pid_t pid_ = 0;
  bool is_stopped_ = false;
};

}  // namespace

TEST_CASE("A reader whose thread does not run in time takes back what it asked of it") {
  const Mapping mapping;
  std::vector<std::byte> out(8);
  const std::vector<pid_t> before = own_threads();
  const auto is_new = [&](pid_t tid) { return std::ranges::find(before, tid) == before.end(); };
  os::ProcessMemoryReader reader;
  REQUIRE(read_at_last(reader, mapping.address(), out) == out.size());
  std::vector<pid_t> of_reader = own_threads();
  std::erase_if(of_reader, std::not_fn(is_new));
  REQUIRE(of_reader.size() == 1);
  {
    const StoppedThread stopped(of_reader.front());
    if (!stopped.is_stopped()) {
      testing::note_skip("ptrace(2) of an own thread is not permitted here");
      return;
    }
    const uint64_t begin_ns = os::monotonic_ns();
    CHECK(read_one(reader, mapping.address(), out) == 0);
    CHECK(os::monotonic_ns() - begin_ns >= os::ProcessMemoryReader::kLongestWait_ns);
  }
  CHECK(read_at_last(reader, mapping.address(), out) == out.size());
  std::vector<pid_t> now = own_threads();
  std::erase_if(now, std::not_fn(is_new));
  CHECK(now == of_reader);  // none was left behind for another
}

namespace {

// A child whose main thread has ended, while another one sleeps.
class WithoutMainThread {
 public:
  WithoutMainThread() : pid_(test::fork_child()) {
    if (pid_ == 0) {
      std::thread([] { ::pause(); }).detach();
      ::syscall(SYS_exit, 0);  // of this thread alone
    }
    for (int i = 0; i < 5000 && os::living_thread_of(pid_) == pid_; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  WithoutMainThread(const WithoutMainThread&) = delete;
  WithoutMainThread& operator=(const WithoutMainThread&) = delete;
  ~WithoutMainThread() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace

TEST_CASE("Memory can be read of a process whose main thread has ended") {
  const Mapping mapping;
  const WithoutMainThread child;
  REQUIRE(os::living_thread_of(child.pid()) != child.pid());
  std::vector<std::byte> out(8);
  CHECK(os::read_memory(child.pid(), mapping.address(), out) == 8);
  CHECK(out[7] == std::byte{7});
  CHECK(os::read_memory(child.pid(), mapping.address() + 2 * kPage, out) == 0);
}

TEST_CASE("The main thread stands for its process as long as it lives, and when nobody does") {
  CHECK(os::living_thread_of(::getpid()) == ::getpid());
  const pid_t child = test::fork_child();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  CHECK(os::living_thread_of(child) == child);
  ::waitpid(child, nullptr, 0);
  CHECK(os::living_thread_of(child) == child);
}
