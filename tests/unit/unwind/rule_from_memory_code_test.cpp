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
  // One run of more instructions than are read; after `at` of them a branch to the exit.
  const auto branch_at = [](int at, int branches) {
    std::vector<int> bytes(static_cast<size_t>(at), 0x90);
    for (int i = 0; i < branches; ++i) {
      const int distance = kExitOfTrace - kFunctionBegin - static_cast<int>(bytes.size()) - 6;
      bytes.insert(bytes.end(), {0x0f, 0x85, distance & 0xff, distance >> 8, 0, 0});  // jne
    }
    bytes.resize(kExitOfTrace - kFunctionBegin, 0x90);
    return bytes;
  };
  CHECK(MemoryCode(branch_at(0, 1)).rule() == from_sp(3));
  CHECK(MemoryCode(branch_at(200, 1)).rule() == from_sp(3));
  CHECK(MemoryCode(branch_at(600, 1)).rule() == from_sp(3));
  CHECK(MemoryCode(branch_at(100, 40)).rule() == from_sp(3));  // more than are noted
  CHECK(is_none(MemoryCode(branch_at(1024, 1)).rule()));
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
