// The rule that the code itself gives, read on to its return. The instructions stand beside the
// bytes.
#include "rule_fixture.h"
#include "support/catch2.h"
#include "unwind/x86_instruction.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

TEST_CASE("without a frame the return address is at the stack pointer") {
  Function f{0x90, 0xc3};  // nop; ret
  CHECK(f.at(0) == from_sp(1));
  CHECK(f.at(1) == from_sp(1));
  CHECK(f.work > 0);
}

TEST_CASE("what is taken off the stack until the return lies below the return address") {
  Function f{
      0x53,                    // 0: push %rbx
      0x41, 0x54,              // 1: push %r12
      0x48, 0x83, 0xec, 0x18,  // 3: sub $0x18,%rsp
      0x90,                    // 7: nop
      0x48, 0x83, 0xc4, 0x18,  // 8: add $0x18,%rsp
      0x41, 0x5c,              // 12: pop %r12
      0x5b,                    // 14: pop %rbx
      0xc3,                    // 15: ret
  };
  CHECK(f.at(0) == from_sp(1));
  CHECK(f.at(1) == from_sp(2));
  CHECK(f.at(3) == from_sp(3));
  CHECK(f.at(7) == from_sp(6));
  CHECK(f.at(12) == from_sp(3));
  CHECK(f.at(15) == from_sp(1));
}

TEST_CASE("a frame pointer is followed from where it is set up to where it is given back") {
  Function f{
      0x55,                    // 0: push %rbp
      0x48, 0x89, 0xe5,        // 1: mov %rsp,%rbp
      0x48, 0x83, 0xec, 0x20,  // 4: sub $0x20,%rsp
      0x90,                    // 8: nop
      0xc9,                    // 9: leave
      0xc3,                    // 10: ret
  };
  CHECK(f.at(0) == from_sp(1));
  CHECK(f.at(1) == saving_fp(from_sp(2), -2));
  CHECK(f.at(4) == saving_fp(from_fp(2), -2));
  CHECK(f.at(8) == saving_fp(from_fp(2), -2));
  CHECK(f.at(10) == from_sp(1));
}

TEST_CASE("a stack of a size that only the frame pointer knows ends by it") {
  Function f{
      0x90,                    // nop
      0x48, 0x8d, 0x65, 0xf0,  // lea -0x10(%rbp),%rsp
      0x5b,                    // pop %rbx
      0x41, 0x5c,              // pop %r12
      0x5d,                    // pop %rbp
      0xc3,                    // ret
  };
  CHECK(f.at(0) == saving_fp(from_fp(2), -2));
  Function aligned{0x48, 0x83, 0xe4, 0xf0, 0xc3};  // and $-16,%rsp; ret
  CHECK(is_none(aligned.at(0)));
}

TEST_CASE("a stack pointer that was put into a register that calls preserve comes from there") {
  Function f{
      0x90,                          // 0: nop
      0xe8, 0,    0,    0,    0,     // 1: call
      0x48, 0x89, 0xdc,              // 6: mov %rbx,%rsp
      0x48, 0x8b, 0x1c, 0x24,        // 9: mov (%rsp),%rbx
      0x48, 0x8b, 0x6c, 0x24, 0x08,  // 13: mov 8(%rsp),%rbp
      0x48, 0x83, 0xc4, 0x60,        // 18: add $0x60,%rsp
      0xc3,                          // 22: ret
  };
  const CompactRule rule{.kind = CompactKind::CodeFromRegister,
                         .fp = CompactFp::Saved,
                         .cfa_words = 13,
                         .fp_words = -12,
                         .return_address_words = 3};
  CHECK(f.at(0) == rule);
  CHECK(f.at(0).base_register() == 3);
  CHECK(f.at(9) == saving_fp(from_sp(13), -12));
  Function overwritten{0x5b, 0x48, 0x89, 0xdc, 0xc3};  // pop %rbx; mov %rbx,%rsp; ret
  CHECK(is_none(overwritten.at(0)));
  Function takes_arguments{0x48, 0x89, 0xdc, 0xc2, 0x08, 0};  // mov %rbx,%rsp; ret $8
  CHECK(is_none(takes_arguments.at(0)));
  // A variable array of GCC's: the register is set here, and the frame pointer leads out.
  Function sets_it{
      0x55,                    // push %rbp
      0x48, 0x89, 0xe5,        // mov %rsp,%rbp
      0x41, 0x54,              // push %r12
      0x49, 0x89, 0xe4,        // mov %rsp,%r12
      0x48, 0x29, 0xc4,        // sub %rax,%rsp
      0x4c, 0x89, 0xe4,        // mov %r12,%rsp
      0x4c, 0x8b, 0x65, 0xf8,  // mov -8(%rbp),%r12
      0xc9, 0xc3,              // leave; ret
  };
  CHECK(sets_it.at(0) == from_sp(1));
  CHECK(sets_it.at(9) == saving_fp(from_fp(2), -2));
  // push %rbp; mov %rsp,%rbp; mov %rbx,%rsp; leave; ret
  Function left_by_fp{0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xdc, 0xc9, 0xc3};
  CHECK(left_by_fp.at(0) == without_fp(from_sp(1)));
  // je 3; pop %rbx; nop; 3: mov %rbx,%rsp; ret: written on the way that is read first
  Function on_one_way{0x74, 0x02, 0x5b, 0x06, 0x48, 0x89, 0xdc, 0xc3};
  CHECK(on_one_way.at(0).kind == CompactKind::CodeFromRegister);
  Function of_another{0x48, 0x89, 0xdc, 0x5d, 0x4c, 0x89, 0xe4, 0xc3};  // ...; mov %r12,%rsp; ret
  CHECK(of_another.at(0).fp == CompactFp::Unknown);
  CHECK(of_another.at(0).base_register() == 12);
}

TEST_CASE("a realigned stack was where a local variable says") {
  // As gcc's functions with AVX variables and alloca(): what is beside the frame pointer is a copy
  // of the return address, below the caller's frame by as much as the alignment took.
  Function f{
      0x4c, 0x8d, 0x54, 0x24, 0x08,  // 0: lea 8(%rsp),%r10
      0x48, 0x83, 0xe4, 0xe0,        // 5: and $-32,%rsp
      0x41, 0xff, 0x72, 0xf8,        // 9: push -8(%r10)
      0x55,                          // 13: push %rbp
      0x48, 0x89, 0xe5,              // 14: mov %rsp,%rbp
      0x41, 0x52,                    // 17: push %r10
      0x48, 0x29, 0xf4,              // 19: sub %rsi,%rsp
      0xe8, 0,    0,    0,    0,     // 22: call
      0x4c, 0x8b, 0x55, 0xf8,        // 27: mov -8(%rbp),%r10
      0xc9,                          // 31: leave
      0x49, 0x8d, 0x62, 0xf8,        // 32: lea -8(%r10),%rsp
      0xc3,                          // 36: ret
  };
  const CompactRule from_variable{.kind = CompactKind::CodeFromWordAtFp,
                                  .fp = CompactFp::SavedFromFp,
                                  .cfa_words = 0,
                                  .fp_words = 0,
                                  .return_address_words = -1};
  for (const uint64_t offset : {19, 22, 27}) CHECK(f.at(offset) == from_variable);
  CompactRule from_r10{.kind = CompactKind::CodeFromRegister,
                       .fp = CompactFp::SavedFromFp,
                       .cfa_words = 0,
                       .return_address_words = kX86R10};
  for (const uint64_t offset : {17, 31}) CHECK(f.at(offset) == from_r10);
  from_r10.fp = CompactFp::Same;
  for (const uint64_t offset : {9, 13, 32}) CHECK(f.at(offset) == from_r10);
  from_r10.fp = CompactFp::SavedFromSp;
  CHECK(f.at(14) == from_r10);
  CHECK(f.at(36) == from_sp(1));
  CHECK(f.at(5) == without_fp(from_r10));  // the alignment hides where it is pushed
  CHECK(is_none(f.at(0)));

  // lea 8(%rsp),%r10; push %r10; pop %r10; ...: what it was before is not what is saved
  CHECK(is_none(
      Function{0x4c, 0x8d, 0x54, 0x24, 0x08, 0x41, 0x52, 0x41, 0x5a, 0x49, 0x8d, 0x62, 0xf8, 0xc3}
          .at(0)));

  // Without alloca(): add $8,%rsp; pop %r10; pop %rbp; lea -8(%r10),%rsp; ret
  Function pops{0x48, 0x83, 0xc4, 0x08, 0x41, 0x5a, 0x5d, 0x49, 0x8d, 0x62, 0xf8, 0xc3};
  CHECK(pops.at(0) == CompactRule{.kind = CompactKind::CodeFromWordAtSp,
                                  .fp = CompactFp::SavedFromSp,
                                  .cfa_words = 0,
                                  .fp_words = 2,
                                  .return_address_words = 1});
  // ...; call; lea -8(%r10),%rsp; ret: what it has there nobody knows
  CHECK(is_none(
      Function{0x4c, 0x8b, 0x55, 0xf8, 0xe8, 0, 0, 0, 0, 0x49, 0x8d, 0x62, 0xf8, 0xc3}.at(0)));
  CHECK(is_none(Function{0x50, 0x41, 0x5a, 0x49, 0x8d, 0x62, 0xf8, 0xc3}.at(0)));  // push %rax; ...
}

TEST_CASE("a frame record says nothing once the stack pointer comes from elsewhere") {
  CHECK(is_none(Function{0xc9, 0x48, 0x89, 0xcc, 0xc3}.at(0)));        // leave; mov %rcx,%rsp; ret
  CHECK(is_none(Function{0xc9, 0x48, 0x83, 0xe4, 0xf0, 0xc3}.at(0)));  // leave; and $-16,%rsp; ret
  CHECK(Function{0x48, 0x89, 0xcc, 0xc9, 0xc3}.at(0) == saving_fp(from_fp(2), -2));
  // mov (%rbp),%rbp; lea -8(%rbp),%rsp; ret
  CHECK(is_none(Function{0x48, 0x8b, 0x6d, 0x00, 0x48, 0x8d, 0x65, 0xf8, 0xc3}.at(0)));
}

TEST_CASE("a stack pointer that was put on the stack comes from there") {
  // As libjpeg-turbo's assembly realigns its stack.
  Function f{
      0x55,                    // 0: push %rbp
      0x48, 0x89, 0xe0,        // 1: mov %rsp,%rax
      0x48, 0x83, 0xe4, 0xe0,  // 4: and $-32,%rsp
      0x48, 0x89, 0x04, 0x24,  // 8: mov %rax,(%rsp)
      0x48, 0x89, 0xe5,        // 12: mov %rsp,%rbp
      0x48, 0x8d, 0x65, 0xc0,  // 15: lea -0x40(%rbp),%rsp
      0x90,                    // 19: nop
      0x48, 0x89, 0xec,        // 20: mov %rbp,%rsp
      0x5c,                    // 23: pop %rsp
      0x5d,                    // 24: pop %rbp
      0xc3,                    // 25: ret
  };
  const CompactRule from_word{.kind = CompactKind::CodeFromWordAtFp,
                              .fp = CompactFp::Saved,
                              .cfa_words = 2,
                              .fp_words = -2,
                              .return_address_words = 0};
  CompactRule from_word_at_sp = from_word;
  from_word_at_sp.kind = CompactKind::CodeFromWordAtSp;
  CHECK(is_none(f.at(0)));
  CHECK(is_none(f.at(4)));
  CHECK(f.at(8) == from_word_at_sp);  // too early: no call stands before what the word leads to
  CHECK(f.at(12) == from_word_at_sp);
  for (const uint64_t offset : {15, 19, 20}) CHECK(f.at(offset) == from_word);
  CHECK(f.at(23) == from_word_at_sp);
  CHECK(f.at(24) == saving_fp(from_sp(2), -2));
  Function farther{0x48, 0x8b, 0x64, 0x24, 0x18, 0x5b, 0xc3};  // mov 24(%rsp),%rsp; pop %rbx; ret
  CHECK(farther.at(0) == CompactRule{.kind = CompactKind::CodeFromWordAtSp,
                                     .cfa_words = 2,
                                     .return_address_words = 3});
  CHECK(is_none(Function{0x50, 0x5c, 0xc3}.at(0)));                    // push %rax; pop %rsp; ret
  CHECK(is_none(Function{0x5c, 0x5c, 0xc3}.at(0)));                    // pop %rsp twice
  CHECK(is_none(Function{0x48, 0x8b, 0x64, 0x24, 0x04, 0xc3}.at(0)));  // mov 4(%rsp),%rsp
  CHECK(is_none(Function{0x5c, 0xc2, 0x08, 0}.at(0)));                 // pop %rsp; ret $8
}

TEST_CASE("the register of the frame pointer may serve as any other") {
  Function f{
      0x55,              // 0: push %rbp
      0x31, 0xed,        // 1: xor %ebp,%ebp
      0x48, 0x89, 0xfd,  // 3: mov %rdi,%rbp
      0x5d,              // 6: pop %rbp
      0xc3,              // 7: ret
  };
  CHECK(f.at(0) == from_sp(1));
  CHECK(f.at(3) == saving_fp(from_sp(2), -2));
  Function lost{0x31, 0xed, 0xc3};  // xor %ebp,%ebp; ret
  CHECK(lost.at(0) == without_fp(from_sp(1)));
  Function gone{0x31, 0xed, 0xc9, 0xc3};  // xor %ebp,%ebp; leave; ret
  CHECK(is_none(gone.at(0)));
  Function from_other{0x53, 0x5d, 0xc3};  // push %rbx; pop %rbp; ret
  CHECK(from_other.at(0) == without_fp(from_sp(1)));
}

TEST_CASE("a frame pointer may be saved by moves, as Go's compiler did") {
  Function f{
      0x48, 0x83, 0xec, 0x10,        // 0: sub $0x10,%rsp
      0x48, 0x89, 0x6c, 0x24, 0x08,  // 4: mov %rbp,8(%rsp)
      0x48, 0x8d, 0x6c, 0x24, 0x08,  // 9: lea 8(%rsp),%rbp
      0x90,                          // 14: nop
      0x48, 0x8b, 0x6c, 0x24, 0x08,  // 15: mov 8(%rsp),%rbp
      0x48, 0x83, 0xc4, 0x10,        // 20: add $0x10,%rsp
      0xc3,                          // 24: ret
  };
  CHECK(f.at(0) == from_sp(1));
  CHECK(f.at(4) == from_sp(3));
  CHECK(f.at(14) == saving_fp(from_sp(3), -2));
  CHECK(f.at(24) == from_sp(1));
}

TEST_CASE("a frame record that is followed says where the return address is, too") {
  Function f{
      0x48, 0x8b, 0x6d, 0x00,  // mov 0(%rbp),%rbp
      0x48, 0x83, 0xc4, 0x30,  // add $0x30,%rsp
      0xff, 0xe1,              // jmp *%rcx
  };
  CHECK(f.at(0) == saving_fp(from_fp(2), -2));
  CHECK(f.at(4) == from_sp(7));
  Function of_other{0x31, 0xed, 0x48, 0x8b, 0x6d, 0x00, 0xc3};  // xor %ebp,%ebp; ...; ret
  CHECK(of_other.at(0) == without_fp(from_sp(1)));
}

TEST_CASE("a function may follow its own frame record, back to its caller's frame pointer") {
  Function f{
      0x55,                    // 0: push %rbp
      0x48, 0x89, 0xe5,        // 1: mov %rsp,%rbp
      0x48, 0x83, 0xec, 0x20,  // 4: sub $0x20,%rsp
      0x48, 0x8b, 0x6d, 0x00,  // 8: mov 0(%rbp),%rbp
      0x48, 0x83, 0xc4, 0x28,  // 12: add $0x28,%rsp
      0xff, 0xe1,              // 16: jmp *%rcx
  };
  CHECK(f.at(0) == from_sp(1));
  CHECK(f.at(1) == saving_fp(from_sp(2), -2));
  CHECK(f.at(8) == saving_fp(from_fp(2), -2));
  CHECK(f.at(12) == from_sp(6));
}

TEST_CASE("branches are read on first, and taken where the way on ends") {
  Function f{
      0x85, 0xc0,              // 0: test %eax,%eax
      0x74, 0x02,              // 2: je 6
      0x0f, 0x0b,              // 4: ud2
      0x48, 0x83, 0xc4, 0x08,  // 6: add $8,%rsp
      0xc3,                    // 10: ret
  };
  CHECK(f.at(0) == from_sp(2));
  CHECK(f.at(4) == kNeverReturns);
}

TEST_CASE("code that goes in circles is left by its exit, or not at all") {
  Function f{
      0x75, 0x03,  // 0: jne 5
      0x90,        // 2: nop
      0xeb, 0xfb,  // 3: jmp 0
      0x5b,        // 5: pop %rbx
      0xc3,        // 6: ret
  };
  CHECK(f.at(2) == from_sp(2));
  Function forever{0xeb, 0xfe};  // jmp to itself
  CHECK(is_none(forever.at(0)));
}

TEST_CASE("a jump goes on elsewhere, one by a pointer to another function") {
  Function f{0xe9, 0xfb, 0x0f, 0, 0};  // jmp 0x2000
  f.code.put(0x2000, {0x5b, 0xc3});
  CHECK(f.at(0) == from_sp(2));
  Function plt{0xff, 0x25, 0x10, 0, 0, 0};  // jmp *x(%rip)
  CHECK(plt.at(0) == from_sp(1));
  Function after_push{0x68, 1, 0, 0, 0, 0xff, 0x25, 0x10, 0, 0, 0};  // push $1; jmp *x(%rip)
  CHECK(is_none(after_push.at(0)));
}

TEST_CASE("a jump by a register is a call's last, if nothing else returns") {
  Function tail{0x5b, 0xff, 0xe0};  // pop %rbx; jmp *%rax
  CHECK(tail.at(0) == from_sp(2));
  CHECK(tail.at(1) == from_sp(1));
  Function by_table{
      0x77, 0x02,  // ja 4
      0xff, 0xe0,  // jmp *%rax
      0x5b,        // 4: pop %rbx
      0xc3,        // ret
  };
  CHECK(by_table.at(0) == from_sp(2));
}

TEST_CASE("a jump by a register is no tail call where branches had to be dropped") {
  Function f{};
  uint64_t at = kFunctionBegin;
  for (int i = 0; i < 65; ++i, at += 6) {
    f.code.put(at, {0x0f, 0x84, 0, i, 0, 0});  // je, each to another place
  }
  f.code.put(at, {0xff, 0xe0});  // jmp *%rax
  CHECK(is_none(f.at(0)));
}

TEST_CASE("code of which all ways trap never returns") {
  Function calls_exit{
      0x31, 0xff,           // xor %edi,%edi
      0xe8, 0,    0, 0, 0,  // call
      0xf4,                 // hlt
  };
  CHECK(calls_exit.at(0) == kNeverReturns);
  CHECK(is_none(
      rule_from_straight_code(Function{0xeb, 0xfe}.code, {kFunctionBegin}, calls_exit.work)));
  Function two_ways{
      0x74, 0x02,  // je 4
      0x0f, 0x0b,  // ud2
      0xf4,        // 4: hlt
  };
  CHECK(two_ways.at(0) == kNeverReturns);
  Function one_returns{0x74, 0x01, 0xf4, 0xc3};  // je 3; hlt; 3: ret
  CHECK(one_returns.at(0) == from_sp(1));
  Function one_goes_in_circles{0x74, 0x01, 0xf4, 0xeb, 0xfe};  // je 3; hlt; 3: jmp 3
  CHECK(is_none(one_goes_in_circles.at(0)));
  Function restorer{0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05, 0xf4};  // mov $15,%eax; syscall; hlt
  CHECK(is_none(restorer.at(0)));
  Function one_is_not_known{0x74, 0x01, 0xf4, 0x06};  // je 3; hlt; 3: no instruction
  CHECK(is_none(one_is_not_known.at(0)));
  Function one_is_no_call{0x74, 0x01, 0xf4, 0x53, 0xff, 0xe0};  // ... 3: push %rbx; jmp *%rax
  CHECK(is_none(one_is_no_call.at(0)));
}

TEST_CASE("a return may take arguments off the stack") {
  Function f{0x5b, 0xc2, 0x10, 0};  // pop %rbx; ret $16
  CompactRule rule = from_sp(4);
  rule.return_address_words = -3;
  CHECK(f.at(0) == rule);
  Function odd{0xc2, 0x01, 0};
  CHECK(is_none(odd.at(0)));
}

TEST_CASE("what lies above the return address is no saved frame pointer") {
  Function f{0x48, 0x8b, 0x6c, 0x24, 0x08, 0xc3};  // mov 8(%rsp),%rbp; ret
  CHECK(f.at(0) == without_fp(from_sp(1)));
  Function overwritten{0x55, 0x58, 0x53, 0x5d, 0xc3};  // push %rbp; pop %rax; push %rbx; pop %rbp
  CHECK(overwritten.at(0) == without_fp(from_sp(1)));
}

TEST_CASE("code that cannot be read, or is none, gives no rule") {
  CHECK(is_none(Function{}.at(0)));
  CHECK(is_none(Function{0x90}.at(0)));
  CHECK(is_none(Function{0x06, 0xc3}.at(0)));
  Function returns_to_nowhere{0x53, 0xc3};  // push %rbx; ret
  CHECK(is_none(returns_to_nowhere.at(0)));
  Function odd{0x48, 0x83, 0xc4, 0x04, 0xc3};  // add $4,%rsp; ret
  CHECK(is_none(odd.at(0)));
  Function huge{0x48, 0x81, 0xc4, 0, 0, 0, 0x10, 0xc3};  // add $0x10000000,%rsp; ret
  CHECK(is_none(huge.at(0)));
}

TEST_CASE("reading on has an end") {
  FakeCode code;
  constexpr unsigned kLimit = kMaxInstructionsOfMemory;
  for (uint64_t i = 0; i < kLimit; ++i) code.put(kFunctionBegin + i, {0x90});
  code.put(kFunctionBegin + kLimit, {0xc3});
  uint32_t work = 0;
  CHECK(is_none(rule_from_code(code, {kFunctionBegin}, work, kLimit)));
  CHECK(work < 64 * kLimit);
  CHECK(rule_from_code(code, {kFunctionBegin}, work, kLimit + 1) == from_sp(1));
  // In more than one of the large pieces that long ways are read in.
  constexpr uint64_t kFar = 7000;
  FakeCode far;
  for (uint64_t i = 0; i < kFar + 8192; ++i) far.put(kFunctionBegin + i, {0x90});
  far.put(kFunctionBegin + kFar, {0x5b, 0xc3});  // pop %rbx; ret
  CHECK(rule_from_code(far, {kFunctionBegin}, work, kMaxInstructionsOfFile) == from_sp(2));
}

TEST_CASE("code is read once, however many branches lead to it") {
  // 32 branches into one way, which ends in a trap near the end of what can be read, where each
  // instruction is dear.
  FakeCode dear;
  constexpr int kBranches = 32, kWay = 2 * kBranches, kWayInstructions = 150;
  for (int i = 0; i < kBranches; ++i) {
    dear.put(kFunctionBegin + 2 * static_cast<uint64_t>(i), {0x74, kWay - 2 * (i + 1) + i});  // je
  }
  for (int i = 0; i < kWayInstructions; ++i)
    dear.put(kFunctionBegin + kWay + static_cast<uint64_t>(i), {0x90});
  dear.put(kFunctionBegin + kWay + kWayInstructions, {0xf4});
  uint32_t work = 0;
  CHECK(rule_from_code(dear, {kFunctionBegin}, work, kMaxInstructionsOfFile) == kNeverReturns);
  CHECK(work < 1u << 16);
}

TEST_CASE("a loop of loops is left by the one way that leads to the return") {
  // As in OpenBLAS's dgemm_kernel_SANDYBRIDGE: of many branches, all but the first lead back.
  FakeCode code;
  constexpr int kLoops = 100, kLoop_bytes = 8;
  constexpr uint64_t kEnd = kFunctionBegin + 6 + kLoops * kLoop_bytes;
  constexpr int kBehindJump = kLoops * kLoop_bytes + 2;
  code.put(kFunctionBegin,
           {0x0f, 0x84, kBehindJump & 0xff, kBehindJump >> 8, 0, 0});  // je behind the jmp
  for (uint64_t i = 0; i < kLoops; ++i) {
    // nop; nop; je back; nop; nop; jne back
    code.put(kFunctionBegin + 6 + i * kLoop_bytes,
             {0x90, 0x90, 0x74, 0xfc, 0x90, 0x90, 0x75, 0xf9});
  }
  code.put(kEnd, {0xeb, 0xf8});                                   // jmp back
  code.put(kEnd + 2, {0x5b, 0xc3});                               // pop %rbx; ret
  for (uint64_t i = 4; i < 300; ++i) code.put(kEnd + i, {0x90});  // else reading its end is dear
  uint32_t work = 0;
  CHECK(rule_from_code(code, {kFunctionBegin + 6}, work, kMaxInstructionsOfFile).kind ==
        CompactKind::NoCfi);
  CHECK(work < 1u << 14);
  CHECK(rule_from_code(code, {kFunctionBegin}, work, kMaxInstructionsOfFile) == from_sp(2));
}

TEST_CASE("a way that comes to code that was read says nothing new of it") {
  Function traps{0x74, 0x01, 0xf4, 0xeb, 0x00, 0xf4};  // je 1f; hlt; 1: jmp 2f; 2: hlt
  CHECK(traps.at(0) == kNeverReturns);
  Function joins{0x75, 0x02, 0x74, 0x01, 0xf4, 0xf4};  // jne 1f; je 2f; hlt; 1: 2: hlt
  CHECK(joins.at(0) == kNeverReturns);
  Function loops{0x75, 0x02, 0xeb, 0xfc, 0xf4};  // 1: jne 2f; jmp 1b; 2: hlt
  CHECK(is_none(loops.at(0)));
  Function falls_into_loop{0x90, 0x90, 0xeb, 0xfc};  // 1: nop; 2: nop; jmp 1b
  CHECK(is_none(falls_into_loop.at(0)));
  CHECK(is_none(falls_into_loop.at(1)));
}

TEST_CASE("a way that comes to a branch's target with another stack pointer is none") {
  // As libc's __strncat_chk: push %rbx; je 2f; nop; 1: sub $8,%rsp; nop; call, which does not
  // return; 2: pop %rbx; nop; ret
  Function f{0x53, 0x74, 0x08, 0x90, 0x48, 0x83, 0xec, 0x08, 0x90, 0xff, 0xd0, 0x5b, 0x90, 0xc3};
  CHECK(f.at(1) == from_sp(2));
}

TEST_CASE("code that goes straight to its return says the same in both readings") {
  Function f{0x48, 0x83, 0xc4, 0x08, 0x5d, 0xc3};  // add $8, %rsp; pop %rbp; ret
  uint32_t work = 0;
  CHECK(rule_from_straight_code(f.code, {kFunctionBegin}, work) == saving_fp(from_sp(3), -2));
  CHECK(f.at(0) == saving_fp(from_sp(3), -2));
  CHECK(work > 0);
}

TEST_CASE("a straight reading follows no jump, and does not go on behind one") {
  uint32_t work = 0;
  const Function branch{0x75, 0x01, 0x90, 0xc3};  // jne over the nop; nop; ret
  CHECK(is_none(rule_from_straight_code(branch.code, {kFunctionBegin}, work)));
  const Function jump{0xeb, 0x00, 0xc3};  // jmp to the ret
  CHECK(is_none(rule_from_straight_code(jump.code, {kFunctionBegin}, work)));
  const Function jump_by_register{0xff, 0xe0};  // jmp *%rax
  CHECK(is_none(rule_from_straight_code(jump_by_register.code, {kFunctionBegin}, work)));
}

TEST_CASE("a straight reading gives up where the return is far") {
  uint32_t work = 0;
  Function f{};
  for (uint64_t i = 0; i < kMaxStraightInstructions; ++i) f.code.put(kFunctionBegin + i, {0x90});
  f.code.put(kFunctionBegin + kMaxStraightInstructions, {0xc3});
  CHECK(is_none(rule_from_straight_code(f.code, {kFunctionBegin}, work)));
  CHECK(rule_from_straight_code(f.code, {kFunctionBegin + 1}, work) == from_sp(1));
}
