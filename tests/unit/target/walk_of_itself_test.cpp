// A snapshot that the test makes of itself, with the product's own reading of its maps and files:
// real CFI of the C library, real signal frames, and where the CPU (or qemu-user's) signs return
// addresses, those.
#include "support/catch2.h"
#include "target/image_store.h"
#include "target/proc.h"
#include "unwind/walk.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

using namespace sentry_prof;

namespace {

// Opens by name; the vdso is read where it lies.
class OwnFiles final : public target::ImageOpener {
 public:
  Result<std::shared_ptr<const ByteSource>> open(const target::MappingFacts& mapping) override {
    if (mapping.path == "[vdso]") return copy_of_memory(mapping);
    return open_by_path(mapping);
  }
  Result<std::shared_ptr<const ByteSource>> open_by_path(
      const target::MappingFacts& mapping) override {
    std::ifstream file(mapping.path, std::ios::binary);
    if (!file) return fail(ErrorCode::NotFound, "cannot be opened");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Bytes bytes = std::as_bytes(std::span(text));
    return std::make_shared<MemoryByteSource>(std::vector(bytes.begin(), bytes.end()));
  }
  Result<std::shared_ptr<const ByteSource>> open_mapped(
      const target::MappingFacts& /*mapping*/) override {
    return fail(ErrorCode::Gone, "its process has ended");
  }

 private:
  static Result<std::shared_ptr<const ByteSource>> copy_of_memory(
      const target::MappingFacts& mapping) {
    const auto* begin = reinterpret_cast<const std::byte*>(mapping.begin.value);
    return std::make_shared<MemoryByteSource>(std::vector(begin, begin + mapping.size_bytes));
  }
};

std::string own_maps() {
  std::ifstream file("/proc/self/maps");
  return {std::istreambuf_iterator<char>(file), {}};
}

// What a sample holds, taken where `trap` stands.
struct Capture {
  unwind::Registers registers;
  uint64_t stack_end = 0;  // set before
  uint64_t stack_begin = 0;
  std::array<uint64_t, 8192> words{};
  size_t word_count = 0;
};
Capture capture;
// __builtin_return_address(0) of each function on the way to the trap, outermost first.
std::array<uint64_t, 16> returns;
size_t return_count = 0;
uint64_t interrupted_pc = 0;

#if defined(__x86_64__)
constexpr unwind::Arch kArch = unwind::Arch::X86_64;
constexpr unsigned kPc = 16, kSp = 7;

unwind::Registers registers_of(const ucontext_t& context) {
  constexpr std::array<int, 17> kInDwarfOrder = {
      REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
      REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  unwind::Registers registers;
  for (unsigned reg = 0; reg < kInDwarfOrder.size(); ++reg) {
    registers.set(reg, static_cast<uint64_t>(context.uc_mcontext.gregs[kInDwarfOrder[reg]]));
  }
  return registers;
}
void skip_trap(ucontext_t&) {}  // reported behind it
void skip_fault(ucontext_t& context) { context.uc_mcontext.gregs[REG_RIP] += 2; }
#define TRAP "int3"
#define FAULT "ud2"
#elif defined(__aarch64__)
constexpr unwind::Arch kArch = unwind::Arch::Aarch64;
constexpr unsigned kPc = 32, kSp = 31;

unwind::Registers registers_of(const ucontext_t& context) {
  unwind::Registers registers;
  for (unsigned reg = 0; reg < 31; ++reg) registers.set(reg, context.uc_mcontext.regs[reg]);
  registers.set(kSp, context.uc_mcontext.sp);
  registers.set(kPc, context.uc_mcontext.pc);
  return registers;
}
void skip_trap(ucontext_t& context) { context.uc_mcontext.pc += 4; }
void skip_fault(ucontext_t& context) { context.uc_mcontext.pc += 4; }
#define TRAP "brk #0"
#define FAULT "udf #0"

// Where a C library that brings its own trampoline (musl) lets handlers return: no CFI.
extern "C" void own_signal_return();
__asm__(
    ".text\n nop\n"
    ".type own_signal_return,%function\n"
    "own_signal_return: mov x8,#139\n svc #0\n"
    ".size own_signal_return,.-own_signal_return\n");
#endif

// AddressSanitizer does not want other functions' frames read.
__attribute__((no_sanitize("address"))) void copy_stack() {
  const auto* from = reinterpret_cast<const volatile uint64_t*>(capture.stack_begin);
  capture.word_count = (capture.stack_end - capture.stack_begin) / 8;
  if (capture.word_count > capture.words.size()) capture.word_count = capture.words.size();
  for (size_t i = 0; i < capture.word_count; ++i) capture.words[i] = from[i];
}

void take_capture(int, siginfo_t*, void* raw_context) {
  auto& context = *static_cast<ucontext_t*>(raw_context);
  capture.registers = registers_of(context);
  capture.stack_begin = capture.registers.get(kSp);
  copy_stack();
  skip_trap(context);
}

uint64_t own_stack_end() {
  pthread_attr_t attributes;
  void* begin = nullptr;
  size_t size_bytes = 0;
  REQUIRE(pthread_getattr_np(pthread_self(), &attributes) == 0);
  REQUIRE(pthread_attr_getstack(&attributes, &begin, &size_bytes) == 0);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uint64_t>(begin) + size_bytes;
}

#define NOTE_RETURN_ADDRESS() \
  returns[return_count++] = reinterpret_cast<uint64_t>(__builtin_return_address(0))
// Behind a call: it is not the function's last act, so no jump.
#define NO_TAIL_CALL() __asm__ volatile("" ::: "memory")

[[gnu::noinline]] void trap() {
  NOTE_RETURN_ADDRESS();
  __asm__ volatile(TRAP ::: "memory");
}

[[gnu::noinline]] void with_alloca(size_t size_bytes) {
  NOTE_RETURN_ADDRESS();
  auto* room = static_cast<char*>(__builtin_alloca(size_bytes));
  __asm__ volatile("" : : "r"(room) : "memory");
  trap();
  NO_TAIL_CALL();
}

[[gnu::noinline]] void with_big_frame(int depth) {
  NOTE_RETURN_ADDRESS();
  volatile char room[5000];
  room[depth] = 1;
  if (depth > 0) {
    with_big_frame(depth - 1);
  } else {
    with_alloca(static_cast<size_t>(room[0]) + 100);
  }
  NO_TAIL_CALL();
}

void run_to_trap() {
  NOTE_RETURN_ADDRESS();
  with_big_frame(2);
  NO_TAIL_CALL();
}

[[gnu::noinline]] void fault() {
  NOTE_RETURN_ADDRESS();
  __asm__ volatile(FAULT ::: "memory");
}

void handle_fault(int, siginfo_t*, void* raw_context) {
  auto& context = *static_cast<ucontext_t*>(raw_context);
  interrupted_pc = registers_of(context).get(kPc);
  trap();
  skip_fault(context);
}

void on_signal(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  REQUIRE(sigaction(number, &action, nullptr) == 0);
}

// The C library's or the vdso's way back on x86-64, our own on aarch64 (qemu-user has no vdso
// before 8.2).
void on_fault() {
#if defined(__aarch64__)
  struct {
    void (*handler)(int, siginfo_t*, void*);
    unsigned long flags;
    void (*restorer)();
    unsigned long mask;
  } const action{handle_fault, SA_SIGINFO | 0x04000000 /* SA_RESTORER */, own_signal_return, 0};
  REQUIRE(syscall(SYS_rt_sigaction, SIGILL, &action, nullptr, sizeof action.mask) == 0);
#else
  on_signal(SIGILL, handle_fault);
#endif
}

void prepare() {
  on_signal(SIGTRAP, take_capture);
  return_count = 0;
  capture.stack_end = own_stack_end();
}

// The walk over what was captured; frames' pcs as addresses in this process.
struct OwnWalk {
  OwnWalk() {
    for (const target::MappingFacts& mapping : target::parse_maps(own_maps(), 1)) {
      modules.insert(images.module_for(mapping));
    }
    const Bytes bytes = std::as_bytes(std::span(capture.words).first(capture.word_count));
    unwind::Unwinder unwinder(kArch);
    const unwind::Walk walk = unwinder.walk(
        capture.registers, unwind::StackSnapshot({capture.stack_begin}, bytes), modules);
    end = name_of(walk.end);
    for (const unwind::WalkedFrame& frame : walk.frames) {
      exact.push_back(frame.pc_is_exact);
      pcs.push_back(frame.pc + bias_of(frame.image));
    }
  }

  uint64_t bias_of(unwind::ImageId image) const {
    for (const unwind::Module& module : modules.modules()) {
      if (module.image == image && image != unwind::kNoImage) return module.bias.value;
    }
    return 0;
  }

  OwnFiles files;
  target::ImageStore images{files};
  unwind::ModuleMap modules;
  std::vector<uint64_t> pcs;
  std::vector<bool> exact;
  std::string end;
};

// The noted return addresses, innermost first.
std::vector<uint64_t> noted(size_t first, size_t count) {
  std::vector<uint64_t> result;
  for (size_t i = first + count; i-- > first;) result.push_back(returns[i]);
  return result;
}

std::vector<uint64_t> part_of(const std::vector<uint64_t>& pcs, size_t first, size_t count) {
  REQUIRE(pcs.size() >= first + count);
  const auto begin = pcs.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

void check_walk_to_root() {
  const OwnWalk walk;
  REQUIRE(return_count == 6);
  CHECK(walk.end == "root");
  CHECK(part_of(walk.pcs, 1, return_count) == noted(0, return_count));
}

}  // namespace

TEST_CASE("the main thread's own stack is walked to its root") {
  prepare();
  run_to_trap();
  check_walk_to_root();
}

TEST_CASE("another thread's own stack is walked to its root") {
  std::thread([] {
    prepare();
    run_to_trap();
  }).join();
  check_walk_to_root();
}

TEST_CASE("a walk goes over a signal frame to the interrupted instruction and its callers") {
  prepare();
  on_fault();
  fault();
  NO_TAIL_CALL();
  const OwnWalk walk;
  REQUIRE(return_count == 2);  // of fault() and of trap(), in the handler
  CHECK(walk.end == "root");
  // trap, handle_fault, the way back from the handler, fault, its caller.
  CHECK(part_of(walk.pcs, 1, 1) == noted(1, 1));
  CHECK(part_of(walk.pcs, 3, 1) == std::vector{interrupted_pc});
  CHECK(walk.exact.at(3));
  CHECK(part_of(walk.pcs, 4, 1) == noted(0, 1));
}
