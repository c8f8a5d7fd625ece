// Code that no file holds: it jumps by a register to what it has loaded, and its runs are long.
#include "rule_fixture.h"
#include "support/catch2.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

constexpr int kExitOfTrace = 0x2000;  // add $0x10,%rsp; ret

struct MemoryCode {
  explicit MemoryCode(const std::vector<int>& bytes) {
    code.put(kFunctionBegin, bytes);
    code.put(kExitOfTrace, {0x48, 0x83, 0xc4, 0x10, 0xc3});
  }
  CompactRule rule() {
    uint32_t work = 0;
    return rule_from_memory_code(code, {kFunctionBegin}, work);
  }
  FakeCode code;
};

// movabs $value,%r11
std::vector<int> load_r11(int value) {
  return {0x49, 0xbb, value & 0xff, value >> 8, 0, 0, 0, 0, 0, 0};
}

std::vector<int> joined(std::initializer_list<std::vector<int>> parts) {
  std::vector<int> bytes;
  for (const auto& part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

const std::vector<int> kJumpByR11{0x41, 0xff, 0xe3};    // jmp *%r11
const std::vector<int> kPushR11{0x41, 0x53};            // push %r11
const std::vector<int> kAdd16{0x4d, 0x8d, 0x5b, 0x10};  // lea 0x10(%r11),%r11
const std::vector<int> kSubtract256{0x4d, 0x8d, 0x9b, 0x00, 0xff, 0xff, 0xff};

}  // namespace

TEST_CASE("a jump by a register that was loaded with an address") {
  CHECK(MemoryCode(joined({load_r11(kExitOfTrace), kJumpByR11})).rule() == from_sp(3));
  CHECK(MemoryCode(joined({load_r11(kExitOfTrace - 16), kAdd16, kJumpByR11})).rule() == from_sp(3));
  CHECK(MemoryCode(joined({load_r11(kExitOfTrace + 256), kSubtract256, kJumpByR11})).rule() ==
        from_sp(3));
  // As PyPy's guards push what the exit pops.
  CHECK(MemoryCode(joined({load_r11(kExitOfTrace - 16), kPushR11, kAdd16, kJumpByR11})).rule() ==
        from_sp(2));
  CHECK(MemoryCode(joined({load_r11(kExitOfTrace), {0x48, 0x89, 0xc8}, kJumpByR11})).rule() ==
        from_sp(3));
}

TEST_CASE("a register that was written since says nothing of where it leads") {
  const auto stops = [](const std::vector<int>& between) {
    return MemoryCode(joined({load_r11(kExitOfTrace), between, kJumpByR11})).rule() ==
           from_sp(1);  // as a tail call
  };
  CHECK(stops({0x4d, 0x8b, 0x1b}));           // mov (%r11),%r11
  CHECK(stops({0x41, 0xbb, 0, 0x20, 0, 0}));  // mov $0x2000,%r11d, which is not followed
  CHECK(stops({0xe8, 0, 0, 0, 0}));           // call
  CHECK(stops({0x0f, 0x05}));                 // syscall
  CHECK(MemoryCode(kJumpByR11).rule() == from_sp(1));
}

TEST_CASE("nothing is added to a register that was not loaded") {
  CHECK(MemoryCode(joined({kAdd16, kJumpByR11})).rule() == from_sp(1));
}

TEST_CASE("a branch keeps what was loaded before it") {
  // jne 1f; load of another; hlt; 1: jmp *%r11
  CHECK(
      MemoryCode(joined({load_r11(kExitOfTrace), {0x75, 11}, load_r11(0x3000), {0xf4}, kJumpByR11}))
          .rule() == from_sp(3));
}

TEST_CASE("only of code that no file holds: that of a file is read where it was linked") {
  const MemoryCode memory(joined({load_r11(kExitOfTrace), kJumpByR11}));
  uint32_t work = 0;
  CHECK(rule_from_code(memory.code, {kFunctionBegin}, work, kMaxInstructionsOfMemory) ==
        from_sp(1));
}

TEST_CASE("of a long run the branches are looked at before its end") {
  // One run of more instructions than are read; after some of them branches to as many guards, each
  // of which jumps to the exit.
  constexpr int kGuards = 0x2100, kGuard_bytes = 16;
  const auto is_left = [](int at, int branches) {
    std::vector<int> bytes(static_cast<size_t>(at), 0x90);
    for (int i = 0; i < branches; ++i) {
      const int guard = kGuards + kGuard_bytes * i;
      const int distance = guard - static_cast<int>(kFunctionBegin + bytes.size()) - 6;
      bytes.insert(bytes.end(), {0x0f, 0x85, distance & 0xff, distance >> 8, 0, 0});  // jne
    }
    bytes.resize(kExitOfTrace - kFunctionBegin, 0x90);
    MemoryCode memory(bytes);
    for (int i = 0; i < branches; ++i) {
      memory.code.put(static_cast<uint64_t>(kGuards + kGuard_bytes * i),
                      joined({load_r11(kExitOfTrace), kJumpByR11}));
    }
    return memory.rule() == from_sp(3);
  };
  CHECK(is_left(0, 1));
  CHECK(is_left(200, 1));
  CHECK(is_left(600, 1));
  CHECK(is_left(100, 32));
  CHECK(is_left(100, 40));  // more than are noted
  CHECK_FALSE(is_left(1024, 1));
}

// A call that does not return, and the next function behind it.
const std::vector<int> kThrowAndNext{0xe8, 0,    0,    0x10, 0,            // call
                                     0x53, 0x48, 0x83, 0xec, 0x10,         // push %rbx; sub
                                     0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3};  // add; pop; ret

TEST_CASE("the return of a long run is its own, not that behind a branch") {
  const int instructions = GENERATE(200, 300, 400, 600);
  const int cold_instructions = GENERATE(0, 10, 300);
  std::vector<int> run(static_cast<size_t>(instructions), 0x90);
  run.insert(run.end(), {0x48, 0x83, 0xc4, 0x10, 0xc3});  // add $0x10,%rsp; ret
  const int distance = static_cast<int>(run.size());
  const std::vector<int> branch{0x0f, 0x85, distance & 0xff, distance >> 8, 0, 0};
  const std::vector<int> cold(static_cast<size_t>(cold_instructions), 0x90);
  CHECK(MemoryCode(joined({branch, run, cold, kThrowAndNext})).rule() == from_sp(3));
  // But if it has none, that is what there is.
  run.resize(run.size() - 5, 0x90);
  run.insert(run.end(), {0x90, 0x90, 0x90, 0x90, 0xf4});
  CHECK(MemoryCode(joined({branch, run, cold, kThrowAndNext})).rule() == from_sp(1));
}

TEST_CASE("of a run that is not read to its end a branch's return is what there is") {
  constexpr int kDistance = kExitOfTrace - static_cast<int>(kFunctionBegin) - 6;
  std::vector<int> run{0x0f, 0x85, kDistance & 0xff, kDistance >> 8, 0, 0};  // jne
  run.resize(kExitOfTrace - kFunctionBegin, 0x90);
  CHECK(MemoryCode(run).rule() == from_sp(3));
}

TEST_CASE("a long run goes on where its branches lead to no return") {
  std::vector<int> run{0x0f, 0x85, 0xfa, 0x17, 0, 0};  // jne to the trap
  run.resize(700, 0x90);
  run.insert(run.end(), {0x48, 0x83, 0xc4, 0x20, 0xc3});  // add $0x20,%rsp; ret
  MemoryCode memory(run);
  memory.code.put(kFunctionBegin + 0x1800, {0xf4});
  CHECK(memory.rule() == from_sp(5));
  memory.code.put(kFunctionBegin, {0x75, 0x01});  // jne to what the run comes to
  memory.code.put(kFunctionBegin + 2, {0x90, 0x90, 0x90, 0x90});
  CHECK(memory.rule() == from_sp(5));
}

TEST_CASE("behind a jump that leads where nothing tells the same function may go on") {
  // As QEMU's blocks end: jmp *%rax; and their exit, to which their beginning branched.
  const std::vector<int> block{0x48, 0x89, 0xef, 0xff, 0xe0,           // mov %rbp,%rdi; jmp *%rax
                               0x48, 0x8d, 0x05, 0,    0,    0,    0,  // lea x(%rip),%rax
                               0x48, 0x83, 0xc4, 0x10, 0x5d, 0x5b, 0xc3};  // add; pop; pop; ret
  MemoryCode memory(block);
  CHECK(memory.rule() == from_sp(1));  // as if the jump led to another function
  uint32_t work = 0;
  CHECK(rule_past_jumps(memory.code, {kFunctionBegin}, work) == saving_fp(from_sp(5), -3));
  // What branches lead to comes first.
  MemoryCode branches(joined({{0x75, 19}, block, {0x48, 0x83, 0xc4, 0x08, 0xc3}}));
  CHECK(rule_past_jumps(branches.code, {kFunctionBegin}, work) == from_sp(2));
}
