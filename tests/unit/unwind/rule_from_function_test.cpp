// The rule that a function gives that is read from its beginning.
#include "rule_fixture.h"
#include "support/catch2.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

CompactRule in_function(const Function& f, uint64_t offset) {
  uint32_t work = 0;
  return rule_from_function(f.code, {kFunctionBegin}, {kFunctionBegin + offset}, work);
}

}  // namespace

TEST_CASE(
    "read from a function's beginning, the code has put on the stack what is below its return "
    "address") {
  const Function f{
      0x55,                       // 0: push %rbp
      0x53,                       // 1: push %rbx
      0x48, 0x83, 0xec, 0x18,     // 2: sub $0x18,%rsp
      0xe8, 0,    0,    0,    0,  // 6: call
      0xbd, 1,    0,    0,    0,  // 11: mov $1,%ebp
      0xe8, 0,    0,    0,    0,  // 16: call, of what does not return
      0x5b,                       // 21: pop %rbx: of the next function
  };
  CHECK(in_function(f, 0) == from_sp(1));
  CHECK(in_function(f, 1) == from_sp(2));
  CHECK(in_function(f, 2) == from_sp(3));
  CHECK(in_function(f, 11) == from_sp(6));
  CHECK(in_function(f, 21) == saving_fp(from_sp(6), -2));
  CHECK(is_none(in_function(f, 17)));  // within an instruction
  CHECK(is_none(in_function(f, 100)));
}

TEST_CASE("before a function has set its frame pointer up, its caller's is in the register") {
  const Function f{
      0x5d,                       // 0: pop %rbp
      0xeb, 0x03,                 // 1: jmp 6
      0x90, 0x90, 0x90,           // 3
      0x8b, 0x59, 0xd0,           // 6: mov -0x30(%rcx),%ebx
      0xa8, 0x01,                 // 9: test $1,%al
      0x0f, 0x85, 0,    1, 0, 0,  // 11: jne
      0x55,                       // 17: push %rbp
      0x48, 0x89, 0xe5,           // 18: mov %rsp,%rbp
      0x56,                       // 21: push %rsi
      0x55,                       // 22: push %rbp
      0xe8, 0,    0,    0, 0,     // 23: call
      0x55,                       // 28: push %rbp: of the next function
      0x48, 0x8b, 0xec,           // 29: mov %rsp,%rbp
  };
  const auto outside_record = [&](uint64_t offset) {
    uint32_t work = 0;
    return rule_outside_frame_record(f.code, {kFunctionBegin + offset}, work);
  };
  CHECK(outside_record(0) == saving_fp(from_sp(2), -2));
  for (const uint64_t offset : {1, 6, 9, 11, 17, 28}) CHECK(outside_record(offset) == from_sp(1));
  for (const uint64_t offset : {18, 29}) CHECK(outside_record(offset) == from_sp(2));
  for (const uint64_t offset : {21, 22, 23, 32}) CHECK(is_none(outside_record(offset)));
}

TEST_CASE("a register that is pushed by the same byte is no frame pointer") {
  const Function f{0x41, 0x55, 0x48, 0x89, 0xe5, 0x90};  // push %r13; mov %rsp,%rbp; nop
  uint32_t work = 0;
  CHECK(is_none(rule_outside_frame_record(f.code, {kFunctionBegin + 2}, work)));
}

TEST_CASE("behind where a function has taken its frame down, its caller's is in the register") {
  const Function f{
      0x5d,                       // 0: pop %rbp
      0x48, 0x83, 0xf9, 0x02,     // 1: cmp $2,%rcx
      0x7f, 0x03,                 // 5: jg 10
      0xc2, 0x10, 0,              // 7: ret $0x10
      0xff, 0xe1,                 // 10: jmp *%rcx
      0xe8, 0,    0,    0,    0,  // 12: call
      0xc3,                       // 17: ret
  };
  const auto outside_record = [&](uint64_t offset) {
    uint32_t work = 0;
    return rule_outside_frame_record(f.code, {kFunctionBegin + offset}, work);
  };
  CompactRule with_arguments = from_sp(3);
  with_arguments.return_address_words = -3;
  for (const uint64_t offset : {1, 5, 7}) CHECK(outside_record(offset) == with_arguments);
  for (const uint64_t offset : {0, 10, 12}) CHECK(is_none(outside_record(offset)));
}

TEST_CASE("from a function's beginning a way is looked for along its branches") {
  const Function f{
      0x53,                 // 0: push %rbx
      0x74, 0x03,           // 1: je 6
      0x5b,                 // 3: pop %rbx
      0xc3,                 // 4: ret
      0x90,                 // 5
      0x41, 0x54,           // 6: push %r12
      0x75, 0xf6,           // 8: jne 0
      0xeb, 0x01,           // 10: jmp 13
      0x90,                 // 12
      0xe8, 0,    0, 0, 0,  // 13: call
      0xf4,                 // 18: hlt
  };
  CHECK(in_function(f, 4) == from_sp(1));
  CHECK(in_function(f, 18) == from_sp(3));
  CHECK(is_none(in_function(f, 12)));
}

TEST_CASE("a function whose stack pointer is not known has no rule from its beginning") {
  const Function realigned{0x48, 0x83, 0xe4, 0xf0, 0x90};  // and $-16,%rsp; nop
  CHECK(is_none(in_function(realigned, 4)));
  const Function pops{0x58, 0x90};  // pop %rax; nop: over its own return address
  CHECK(is_none(in_function(pops, 1)));
  const Function uneven{0x48, 0x83, 0xec, 0x04, 0x90};  // sub $4,%rsp; nop
  CHECK(is_none(in_function(uneven, 4)));
}

TEST_CASE("a frame pointer whose place was taken off the stack again is not read from there") {
  const Function f{
      0x55,              // 0: push %rbp
      0xbd, 1, 0, 0, 0,  // 1: mov $1,%ebp
      0x58,              // 6: pop %rax
      0x90,              // 7: nop
  };
  CHECK(in_function(f, 6) == saving_fp(from_sp(2), -2));
  CHECK(in_function(f, 7) == without_fp(from_sp(1)));
}

TEST_CASE("a function without end costs no more than its limit") {
  Function f{};
  for (uint64_t i = 0; i < 3 * kMaxInstructionsOfFunction; ++i)
    f.code.put(kFunctionBegin + i, {0x90});
  CHECK(in_function(f, kMaxInstructionsOfFunction - 1) == from_sp(1));
  CHECK(is_none(in_function(f, 2 * kMaxInstructionsOfFunction)));
}
