// Decoding of x86-64 instructions by hand-picked encodings, as gas writes them; against objdump's
// reading of whole libraries in x86_objdump_test.cpp.
#include "x86_checks.h"

using namespace sentry_prof;
using namespace sentry_prof::test;
using namespace sentry_prof::unwind;

namespace {

void check_is_none(std::initializer_list<int> bytes) {
  std::vector<std::byte> code = instruction_bytes(bytes);
  INFO(instruction_hex(code));
  code.resize(2 * kLongestX86Instruction_bytes, std::byte{0x90});
  CHECK_FALSE(decode_x86(code).has_value());
}

}  // namespace

TEST_CASE("push and pop of registers") {
  for (const int reg : {0, 1, 2, 3, 6, 7}) {
    check_effect({0x50 + reg}, X86Effect::Push);
    check_effect({0x58 + reg}, X86Effect::Pop);
  }
  for (int reg = 0; reg < 8; ++reg) {  // %r8 to %r15: %r12 and %r13 are 4 and 5 with REX.B
    check_effect({0x41, 0x50 + reg}, reg == 2 ? X86Effect::PushR10 : X86Effect::Push);
    check_effect({0x41, 0x58 + reg}, reg == 2 ? X86Effect::PopR10 : X86Effect::Pop);
  }
  check_effect({0x54}, X86Effect::Push);                // %rsp
  check_effect({0x5c}, X86Effect::SpFromStack);         // pop %rsp
  check_effect({0x66, 0x5c}, X86Effect::OverwritesSp);  // pop %sp
  check_effect({0x55}, X86Effect::PushFp);
  check_effect({0x5d}, X86Effect::PopFp);
  check_effect({0x40, 0x55}, X86Effect::PushFp);  // with a REX that says nothing
  check_effect({0x48, 0x5d}, X86Effect::PopFp);
  check_effect({0xff, 0xf5}, X86Effect::PushFp);  // the long form
  check_effect({0x8f, 0xc5}, X86Effect::PopFp);
  check_effect({0x41, 0xff, 0xf5}, X86Effect::Push);  // %r13
  check_effect({0x41, 0x8f, 0xc5}, X86Effect::Pop);
}

TEST_CASE("push and pop of anything else") {
  check_effect({0x6a, 0xff}, X86Effect::Push);                      // $-1
  check_effect({0x68, 0x00, 0x01, 0x00, 0x00}, X86Effect::Push);    // $0x100
  check_effect({0xff, 0x35, 0xe2, 0x2f, 0, 0}, X86Effect::Push);    // 0x2fe2(%rip), as in PLTs
  check_effect({0xff, 0x75, 0x10}, X86Effect::Push);                // 0x10(%rbp)
  check_effect({0xff, 0x74, 0x24, 0x08}, X86Effect::Push);          // 8(%rsp)
  check_effect({0x41, 0xff, 0x34, 0x24}, X86Effect::Push);          // (%r12)
  check_effect({0x8f, 0x45, 0x10}, X86Effect::Pop);                 // 0x10(%rbp)
  check_effect({0x8f, 0x04, 0x24}, X86Effect::Pop);                 // (%rsp)
  check_effect({0x9c}, X86Effect::Push);                            // pushf
  check_effect({0x9d}, X86Effect::Pop);                             // popf
  check_effect({0x0f, 0xa0}, X86Effect::Push);                      // %fs
  check_effect({0x0f, 0xa9}, X86Effect::Pop);                       // %gs
  check_effect({0x66, 0x50}, X86Effect::OverwritesSp);              // %ax: two bytes
  check_effect({0x66, 0x5d}, X86Effect::OverwritesSp);              // %bp
  check_effect({0x66, 0x68, 0x34, 0x12}, X86Effect::OverwritesSp);  // pushw $0x1234
  check_effect({0x66, 0x48, 0x50}, X86Effect::Push);                // %rax: REX.W wins
}

TEST_CASE("bytes that are added to the stack pointer") {
  check_effect({0x48, 0x83, 0xec, 0x18}, X86Effect::AddToSp, -0x18);           // sub $0x18,%rsp
  check_effect({0x48, 0x81, 0xec, 0x88, 0, 0, 0}, X86Effect::AddToSp, -0x88);  // sub $0x88,%rsp
  check_effect({0x48, 0x83, 0xc4, 0x18}, X86Effect::AddToSp, 0x18);            // add $0x18,%rsp
  check_effect({0x48, 0x81, 0xc4, 0x88, 0, 0, 0}, X86Effect::AddToSp, 0x88);   // add $0x88,%rsp
  check_effect({0x48, 0x83, 0xc4, 0x80}, X86Effect::AddToSp, -0x80);           // add $-0x80,%rsp
  check_effect({0x48, 0x83, 0xec, 0x80}, X86Effect::AddToSp, 0x80);            // sub $-0x80,%rsp
  check_effect({0x48, 0x81, 0xec, 0, 0, 0, 0x80}, X86Effect::OverwritesSp);    // has no negative
  check_effect({0x48, 0x8d, 0x64, 0x24, 0xf8}, X86Effect::AddToSp, -8);        // lea -8(%rsp),%rsp
  check_effect({0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0}, X86Effect::AddToSp,
               0x80);                                             // lea 0x80(%rsp),%rsp
  check_effect({0x48, 0x8d, 0x24, 0x24}, X86Effect::AddToSp, 0);  // lea (%rsp),%rsp
  check_has_no_effect({0x49, 0x83, 0xc4, 0x18});                  // add $0x18,%r12
  check_has_no_effect({0x48, 0x83, 0x04, 0x24, 0x18});            // addq $0x18,(%rsp)
}

TEST_CASE("stack pointer and frame pointer from each other") {
  check_effect({0x48, 0x89, 0xec}, X86Effect::SpFromFp);               // mov %rbp,%rsp
  check_effect({0x48, 0x8b, 0xe5}, X86Effect::SpFromFp);               // the other way
  check_effect({0x48, 0x8d, 0x65, 0xd8}, X86Effect::SpFromFp, -0x28);  // lea -0x28(%rbp),%rsp
  check_effect({0x48, 0x8d, 0xa5, 0x00, 0xff, 0xff, 0xff}, X86Effect::SpFromFp, -0x100);
  check_effect({0x48, 0x89, 0xe5}, X86Effect::FpFromSp);                    // mov %rsp,%rbp
  check_effect({0x48, 0x8b, 0xec}, X86Effect::FpFromSp);                    // the other way
  check_effect({0x48, 0x8d, 0x2c, 0x24}, X86Effect::FpFromSp, 0);           // lea (%rsp),%rbp
  check_effect({0x48, 0x8d, 0x6c, 0x24, 0x10}, X86Effect::FpFromSp, 0x10);  // lea 0x10(%rsp),%rbp
  check_has_no_effect({0x48, 0x8d, 0x6d, 0x00});                            // lea 0(%rbp),%rbp
  check_effect({0x48, 0x8d, 0x6d, 0x08}, X86Effect::OverwritesFp);          // lea 8(%rbp),%rbp
  check_effect({0x48, 0x8d, 0xac, 0x24, 0x80, 0, 0, 0}, X86Effect::FpFromSp, 0x80);
  check_effect({0xc9}, X86Effect::Leave);
  check_effect({0xc8, 0x10, 0x00, 0x00}, X86Effect::Stops);  // enter $16,$0
}

TEST_CASE("the frame pointer in a stack slot") {
  check_effect({0x48, 0x89, 0x2c, 0x24}, X86Effect::SavesFp, 0);            // mov %rbp,(%rsp)
  check_effect({0x48, 0x89, 0x6c, 0x24, 0xf0}, X86Effect::SavesFp, -0x10);  // mov %rbp,-0x10(%rsp)
  check_effect({0x48, 0x89, 0xac, 0x24, 0, 1, 0, 0}, X86Effect::SavesFp, 0x100);
  check_effect({0x48, 0x8b, 0x2c, 0x24}, X86Effect::RestoresFp, 0);           // mov (%rsp),%rbp
  check_effect({0x48, 0x8b, 0x6c, 0x24, 0x10}, X86Effect::RestoresFp, 0x10);  // mov 0x10(%rsp),%rbp
  check_effect({0x48, 0x8b, 0xac, 0x24, 0, 1, 0, 0}, X86Effect::RestoresFp, 0x100);
  check_has_no_effect({0x89, 0x2c, 0x24});              // mov %ebp,(%rsp)
  check_has_no_effect({0x48, 0x89, 0x2c, 0xc4});        // mov %rbp,(%rsp,%rax,8)
  check_has_no_effect({0x49, 0x89, 0x2c, 0x24});        // mov %rbp,(%r12)
  check_has_no_effect({0x4c, 0x89, 0x2c, 0x24});        // mov %r13,(%rsp)
  check_has_no_effect({0x4c, 0x8b, 0x6c, 0x24, 0x08});  // mov 8(%rsp),%r13
}

TEST_CASE("registers that only look like these two") {
  check_has_no_effect({0x49, 0x89, 0xe4});        // mov %rsp,%r12
  check_has_no_effect({0x49, 0x89, 0xed});        // mov %rbp,%r13
  check_has_no_effect({0x4c, 0x8b, 0xec});        // mov %rsp,%r13
  check_has_no_effect({0x41, 0xbd, 1, 0, 0, 0});  // mov $1,%r13d
  check_has_no_effect({0x45, 0x31, 0xed});        // xor %r13d,%r13d
  check_has_no_effect({0x48, 0x89, 0x65, 0x00});  // mov %rsp,0(%rbp)
  check_has_no_effect({0xb4, 0x01});              // mov $1,%ah
  check_has_no_effect({0xb5, 0x01});              // mov $1,%ch
  check_has_no_effect({0x0f, 0x95, 0xc5});        // setne %ch
  check_has_no_effect({0x80, 0xe5, 0x0f});        // and $0xf,%ch
}

TEST_CASE("the stack pointer from elsewhere") {
  check_effect({0x48, 0x83, 0xe4, 0xf0}, X86Effect::OverwritesSp);  // and $-16,%rsp
  check_effect({0x48, 0x81, 0xe4, 0, 0xf0, 0xff, 0xff}, X86Effect::OverwritesSp);
  check_effect({0x83, 0xec, 0x18}, X86Effect::OverwritesSp);                // sub $0x18,%esp
  check_effect({0x48, 0x29, 0xc4}, X86Effect::OverwritesSp);                // sub %rax,%rsp
  check_effect({0x48, 0x2b, 0xe0}, X86Effect::OverwritesSp);                // the other way
  check_effect({0x48, 0x89, 0xc4}, X86Effect::OverwritesSp);                // mov %rax,%rsp
  check_effect({0x4c, 0x89, 0xcc}, X86Effect::OverwritesSp);                // mov %r9,%rsp
  check_effect({0x48, 0x8b, 0x27}, X86Effect::OverwritesSp);                // mov (%rdi),%rsp
  check_effect({0x48, 0x8b, 0x64, 0x24, 0x08}, X86Effect::SpFromStack, 8);  // mov 8(%rsp),%rsp
  check_effect({0x8b, 0x64, 0x24, 0x08}, X86Effect::OverwritesSp);          // mov 8(%rsp),%esp
  check_effect({0x4a, 0x8b, 0x64, 0x0c, 0x08},
               X86Effect::OverwritesSp);                                  // mov 8(%rsp,%r9),%rsp
  check_effect({0x89, 0xec}, X86Effect::OverwritesSp);                    // mov %ebp,%esp
  check_effect({0x48, 0x8d, 0x24, 0x04}, X86Effect::OverwritesSp);        // lea (%rsp,%rax),%rsp
  check_effect({0x4a, 0x8d, 0x24, 0x24}, X86Effect::OverwritesSp);        // lea (%rsp,%r12),%rsp
  check_effect({0x49, 0x8d, 0x61, 0xf8}, X86Effect::OverwritesSp);        // lea -8(%r9),%rsp
  check_effect({0x67, 0x48, 0x8d, 0x65, 0x08}, X86Effect::OverwritesSp);  // lea 8(%ebp),%rsp
  check_effect({0x48, 0x8d, 0x25, 1, 0, 0, 0}, X86Effect::OverwritesSp);  // lea 1(%rip),%rsp
  check_effect({0x8d, 0x64, 0x24, 0x08}, X86Effect::OverwritesSp);        // lea 8(%rsp),%esp
  check_effect({0x48, 0x87, 0xec}, X86Effect::OverwritesSp);              // xchg %rbp,%rsp
  check_effect({0x48, 0x94}, X86Effect::OverwritesSp);                    // xchg %rax,%rsp
  check_effect({0x48, 0x87, 0x27}, X86Effect::OverwritesSp);              // xchg %rsp,(%rdi)
  check_effect({0x48, 0xff, 0xcc}, X86Effect::OverwritesSp);              // dec %rsp
  check_effect({0xbc, 0, 0, 0, 1}, X86Effect::OverwritesSp);              // mov $x,%esp
  check_effect({0x48, 0x0f, 0x44, 0xe0}, X86Effect::OverwritesSp);        // cmove %rax,%rsp
  check_effect({0x40, 0x80, 0xe4, 0xf0}, X86Effect::OverwritesSp);        // and $0xf0,%spl
}

TEST_CASE("the frame pointer from elsewhere") {
  check_effect({0x31, 0xed}, X86Effect::OverwritesFp);                          // xor %ebp,%ebp
  check_effect({0xbd, 1, 0, 0, 0}, X86Effect::OverwritesFp);                    // mov $1,%ebp
  check_effect({0x48, 0xbd, 1, 2, 3, 4, 5, 6, 7, 8}, X86Effect::OverwritesFp);  // movabs
  check_effect({0x66, 0xbd, 1, 0}, X86Effect::OverwritesFp);                    // mov $1,%bp
  check_effect({0x48, 0xc7, 0xc5, 0xff, 0xff, 0xff, 0xff},
               X86Effect::OverwritesFp);                                  // mov $-1,%rbp
  check_effect({0x48, 0x89, 0xfd}, X86Effect::OverwritesFp);              // mov %rdi,%rbp
  check_effect({0x4c, 0x89, 0xc5}, X86Effect::OverwritesFp);              // mov %r8,%rbp
  check_effect({0x89, 0xe5}, X86Effect::OverwritesFp);                    // mov %esp,%ebp
  check_effect({0x8b, 0x6c, 0x24, 0x10}, X86Effect::OverwritesFp);        // mov 0x10(%rsp),%ebp
  check_effect({0x48, 0x8b, 0x2c, 0xc4}, X86Effect::OverwritesFp);        // mov (%rsp,%rax,8),%rbp
  check_effect({0x48, 0x8b, 0x6d, 0x00}, X86Effect::FollowsFp);           // mov 0(%rbp),%rbp
  check_effect({0x48, 0x83, 0xc5, 0x08}, X86Effect::OverwritesFp);        // add $8,%rbp
  check_effect({0x48, 0x8d, 0x6d, 0x08}, X86Effect::OverwritesFp);        // lea 8(%rbp),%rbp
  check_effect({0x48, 0x8d, 0x6c, 0x04, 0x08}, X86Effect::OverwritesFp);  // lea 8(%rsp,%rax),%rbp
  check_effect({0x48, 0x8d, 0x2c, 0x25, 1, 0, 0, 0}, X86Effect::OverwritesFp);  // lea 1,%rbp
  check_effect({0x48, 0x0f, 0x45, 0xe8}, X86Effect::OverwritesFp);              // cmovne %rax,%rbp
  check_effect({0x0f, 0xb6, 0x2f}, X86Effect::OverwritesFp);              // movzbl (%rdi),%ebp
  check_effect({0x48, 0x63, 0xed}, X86Effect::OverwritesFp);              // movslq %ebp,%rbp
  check_effect({0x48, 0x0f, 0xaf, 0xe8}, X86Effect::OverwritesFp);        // imul %rax,%rbp
  check_effect({0x6b, 0xe8, 0x18}, X86Effect::OverwritesFp);              // imul $0x18,%eax,%ebp
  check_effect({0x69, 0xe8, 0, 1, 0, 0}, X86Effect::OverwritesFp);        // imul $0x100,%eax,%ebp
  check_effect({0x48, 0xc1, 0xed, 0x03}, X86Effect::OverwritesFp);        // shr $3,%rbp
  check_effect({0x48, 0xd3, 0xe5}, X86Effect::OverwritesFp);              // shl %cl,%rbp
  check_effect({0x48, 0xd1, 0xfd}, X86Effect::OverwritesFp);              // sar %rbp
  check_effect({0x48, 0xf7, 0xdd}, X86Effect::OverwritesFp);              // neg %rbp
  check_effect({0xff, 0xc5}, X86Effect::OverwritesFp);                    // inc %ebp
  check_effect({0x0f, 0xcd}, X86Effect::OverwritesFp);                    // bswap %ebp
  check_effect({0x95}, X86Effect::OverwritesFp);                          // xchg %eax,%ebp
  check_effect({0x48, 0x87, 0xdd}, X86Effect::OverwritesFp);              // xchg %rbx,%rbp
  check_effect({0xf0, 0x48, 0x0f, 0xc1, 0x2f}, X86Effect::OverwritesFp);  // lock xadd %rbp,(%rdi)
  check_effect({0x48, 0x0f, 0xba, 0xed, 0x33}, X86Effect::OverwritesFp);  // bts $0x33,%rbp
  check_effect({0x48, 0x0f, 0xab, 0xc5}, X86Effect::OverwritesFp);        // bts %rax,%rbp
  check_effect({0x48, 0x0f, 0xa4, 0xd5, 0x05}, X86Effect::OverwritesFp);  // shld $5,%rdx,%rbp
  check_effect({0x48, 0x0f, 0xad, 0xd5}, X86Effect::OverwritesFp);        // shrd %cl,%rdx,%rbp
  check_effect({0xf3, 0x48, 0x0f, 0xb8, 0xe8}, X86Effect::OverwritesFp);  // popcnt %rax,%rbp
  check_effect({0x40, 0x0f, 0x94, 0xc5}, X86Effect::OverwritesFp);        // sete %bpl
  check_effect({0x40, 0x80, 0xe5, 0x40}, X86Effect::OverwritesFp);        // and $0x40,%bpl
  check_effect({0x40, 0x8a, 0x28}, X86Effect::OverwritesFp);              // mov (%rax),%bpl
  check_effect({0x40, 0xb5, 0x01}, X86Effect::OverwritesFp);              // mov $1,%bpl
  check_effect({0x40, 0xf6, 0xdd}, X86Effect::OverwritesFp);              // neg %bpl
  check_effect({0x40, 0xfe, 0xc5}, X86Effect::OverwritesFp);              // inc %bpl
}

TEST_CASE("the frame pointer from a vector register") {
  check_effect({0x66, 0x48, 0x0f, 0x7e, 0xc5}, X86Effect::OverwritesFp);  // movq %xmm0,%rbp
  check_effect({0x66, 0x0f, 0xd7, 0xe8}, X86Effect::OverwritesFp);        // pmovmskb %xmm0,%ebp
  check_effect({0x0f, 0x50, 0xe8}, X86Effect::OverwritesFp);              // movmskps %xmm0,%ebp
  check_effect({0x66, 0x0f, 0xc5, 0xe8, 0x01}, X86Effect::OverwritesFp);  // pextrw $1,%xmm0,%ebp
  check_effect({0xf2, 0x48, 0x0f, 0x2c, 0xe8}, X86Effect::OverwritesFp);  // cvttsd2si %xmm0,%rbp
  check_effect({0x66, 0x0f, 0x3a, 0x16, 0xc5, 0x01},
               X86Effect::OverwritesFp);                                  // pextrd $1,%xmm0,%ebp
  check_effect({0xc5, 0xfd, 0xd7, 0xe8}, X86Effect::OverwritesFp);        // vpmovmskb %ymm0,%ebp
  check_effect({0xc4, 0xe1, 0xf9, 0x7e, 0xc5}, X86Effect::OverwritesFp);  // vmovq %xmm0,%rbp
  check_effect({0xc5, 0xfb, 0x2c, 0xe8}, X86Effect::OverwritesFp);        // vcvttsd2si %xmm0,%ebp
  check_effect({0xc4, 0xe1, 0xfb, 0x93, 0xe8}, X86Effect::OverwritesFp);  // kmovq %k0,%rbp
  check_effect({0x62, 0xf1, 0xff, 0x08, 0x78, 0xe8},
               X86Effect::OverwritesFp);  // vcvttsd2usi %xmm0,%rbp
  // Vector registers 4 and 5.
  check_has_no_effect({0xf3, 0x0f, 0x7e, 0xc5});        // movq %xmm5,%xmm0
  check_has_no_effect({0x66, 0x48, 0x0f, 0x6e, 0xed});  // movq %rbp,%xmm5
  check_has_no_effect({0x0f, 0x28, 0xe5});              // movaps %xmm5,%xmm4
  check_has_no_effect({0xc5, 0xfd, 0x6f, 0xec});        // vmovdqa %ymm4,%ymm5
  check_has_no_effect({0xc5, 0x7d, 0xd7, 0xe8});        // vpmovmskb %ymm0,%r13d
}

TEST_CASE("the frame pointer from BMI, ADX and such") {
  check_effect({0xc4, 0xe2, 0xc8, 0xf2, 0xe8}, X86Effect::OverwritesFp);  // andn %rax,%rsi,%rbp
  check_effect({0xc4, 0xe2, 0xd0, 0xf3, 0xc8}, X86Effect::OverwritesFp);  // blsr %rax,%rbp
  check_effect({0xc4, 0x42, 0xd3, 0xf6, 0xdb}, X86Effect::OverwritesFp);  // mulx %r11,%rbp,%r11
  check_effect({0xc4, 0xe2, 0xfb, 0xf6, 0xe9}, X86Effect::OverwritesFp);  // mulx %rcx,%rax,%rbp
  check_effect({0xc4, 0xc2, 0x89, 0xf7, 0xe8}, X86Effect::OverwritesFp);  // shlx %r14,%r8,%rbp
  check_effect({0xc4, 0xe3, 0x7b, 0xf0, 0xe8, 0x02}, X86Effect::OverwritesFp);  // rorx $2,%eax,%ebp
  check_effect({0x66, 0x48, 0x0f, 0x38, 0xf6, 0xe8}, X86Effect::OverwritesFp);  // adcx %rax,%rbp
  check_effect({0x0f, 0x38, 0xf0, 0x2f}, X86Effect::OverwritesFp);              // movbe (%rdi),%ebp
  check_effect({0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xe8}, X86Effect::OverwritesFp);  // crc32 %rax,%rbp
  check_has_no_effect({0x0f, 0x38, 0xf1, 0x2f});                                // movbe %ebp,(%rdi)
  check_has_no_effect({0xc4, 0x62, 0xc8, 0xf2, 0xe8});  // andn %rax,%rsi,%r13
}

TEST_CASE("what only reads the two registers") {
  check_has_no_effect({0x48, 0x39, 0xec});              // cmp %rbp,%rsp
  check_has_no_effect({0x48, 0x3b, 0xe0});              // cmp %rax,%rsp
  check_has_no_effect({0x48, 0x83, 0xfd, 0x01});        // cmp $1,%rbp
  check_has_no_effect({0x48, 0x81, 0xfc, 0, 1, 0, 0});  // cmp $0x100,%rsp
  check_has_no_effect({0x40, 0x80, 0xfd, 0x01});        // cmp $1,%bpl
  check_has_no_effect({0x85, 0xed});                    // test %ebp,%ebp
  check_has_no_effect({0x40, 0xf6, 0xc5, 0x01});        // test $1,%bpl
  check_has_no_effect({0xf7, 0xc5, 0, 1, 0, 0});        // test $0x100,%ebp
  check_has_no_effect({0x66, 0xf7, 0xc5, 0, 1});        // test $0x100,%bp
  check_has_no_effect({0x48, 0xf7, 0xc5, 0, 1, 0, 0});  // test $0x100,%rbp
  check_has_no_effect({0xa8, 0x01});                    // test $1,%al
  check_has_no_effect({0x48, 0xa9, 0, 1, 0, 0});        // test $0x100,%rax
  check_has_no_effect({0xf6, 0x44, 0x24, 0x08, 0x01});  // testb $1,8(%rsp)
  check_has_no_effect({0xf7, 0x45, 0x08, 1, 0, 0, 0});  // testl $1,8(%rbp)
  check_has_no_effect({0x48, 0xf7, 0xe5});              // mul %rbp
  check_has_no_effect({0x48, 0xf7, 0xfd});              // idiv %rbp
  check_has_no_effect({0x48, 0x0f, 0xa3, 0xc5});        // bt %rax,%rbp
  check_has_no_effect({0x0f, 0xba, 0xe5, 0x03});        // bt $3,%ebp
  check_has_no_effect({0x48, 0x01, 0x2c, 0xc4});        // add %rbp,(%rsp,%rax,8)
  check_has_no_effect({0xf0, 0x0f, 0xb1, 0x2a});        // lock cmpxchg %ebp,(%rdx)
}

TEST_CASE("instructions that do nothing") {
  check_has_no_effect({0xf3, 0x0f, 0x1e, 0xfa});  // endbr64
  check_has_no_effect({0x90});
  check_has_no_effect({0x66, 0x90});
  check_has_no_effect({0xf3, 0x90});  // pause
  check_has_no_effect({0x0f, 0x1f, 0x00});
  check_has_no_effect({0x0f, 0x1f, 0x40, 0x00});
  check_has_no_effect({0x0f, 0x1f, 0x44, 0x00, 0x00});
  check_has_no_effect({0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00});
  check_has_no_effect({0x0f, 0x1f, 0x80, 0, 0, 0, 0});
  check_has_no_effect({0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0});
  check_has_no_effect({0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0});
  check_has_no_effect(
      {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0});  // 15 bytes
}

TEST_CASE("long immediates and addresses") {
  check_has_no_effect({0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8});           // movabs $x,%rax
  check_has_no_effect({0x49, 0xbd, 1, 2, 3, 4, 5, 6, 7, 8});           // movabs $x,%r13
  check_has_no_effect({0xa1, 1, 2, 3, 4, 5, 6, 7, 8});                 // movabs x,%eax
  check_has_no_effect({0x48, 0xa3, 1, 2, 3, 4, 5, 6, 7, 8});           // movabs %rax,x
  check_has_no_effect({0x67, 0xa0, 1, 2, 3, 4});                       // addr32
  check_has_no_effect({0xc7, 0x84, 0x24, 0, 1, 0, 0, 1, 2, 3, 4});     // movl $x,0x100(%rsp)
  check_has_no_effect({0x66, 0xc7, 0x45, 0x08, 1, 2});                 // movw $x,8(%rbp)
  check_has_no_effect({0x48, 0xc7, 0x05, 1, 0, 0, 0, 1, 2, 3, 4});     // movq $x,1(%rip)
  check_has_no_effect({0x66, 0x81, 0xf9, 1, 2});                       // cmp $x,%cx
  check_has_no_effect({0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0});  // mov %fs:0x28,%rax
  check_has_no_effect({0x64, 0x48, 0x2b, 0x14, 0x25, 0x28, 0, 0, 0});  // sub %fs:0x28,%rdx
  check_has_no_effect({0xf3, 0x48, 0xab});                             // rep stos
}

TEST_CASE("x87, SSE, AVX and AVX-512 have their sizes") {
  check_has_no_effect({0xd9, 0xee});                                // fldz
  check_has_no_effect({0xdb, 0x6c, 0x24, 0x10});                    // fldt 0x10(%rsp)
  check_has_no_effect({0xdd, 0x9d, 0, 1, 0, 0});                    // fstpl 0x100(%rbp)
  check_has_no_effect({0x9b});                                      // fwait
  check_has_no_effect({0x0f, 0x28, 0xc1});                          // movaps %xmm1,%xmm0
  check_has_no_effect({0x66, 0x0f, 0x6f, 0x05, 1, 0, 0, 0});        // movdqa 1(%rip),%xmm0
  check_has_no_effect({0xf3, 0x44, 0x0f, 0x6f, 0x44, 0x24, 0x10});  // movdqu 0x10(%rsp),%xmm8
  check_has_no_effect({0x66, 0x0f, 0x70, 0xc0, 0x4e});              // pshufd $0x4e,%xmm0,%xmm0
  check_has_no_effect({0x66, 0x0f, 0x73, 0xd8, 0x08});              // psrldq $8,%xmm0
  check_has_no_effect({0x0f, 0xc6, 0xc0, 0x1b});                    // shufps
  check_has_no_effect({0x0f, 0xc2, 0xc1, 0x01});                    // cmpltps
  check_has_no_effect({0x66, 0x0f, 0xc4, 0xc0, 0x01});              // pinsrw
  check_has_no_effect({0x0f, 0x77});                                // emms
  check_has_no_effect({0x0f, 0xae, 0x5c, 0x24, 0x08});              // stmxcsr 8(%rsp)
  check_has_no_effect({0x0f, 0xae, 0xe8});                          // lfence
  check_has_no_effect({0x0f, 0xa2});                                // cpuid
  check_has_no_effect({0x0f, 0x01, 0xd0});                          // xgetbv
  check_has_no_effect({0x0f, 0x0f, 0xc1, 0xb7});                    // pmulhrw: 3DNow
  check_has_no_effect({0x66, 0x0f, 0x38, 0x00, 0xc1});              // pshufb
  check_has_no_effect({0x66, 0x0f, 0x38, 0x17, 0x04, 0x24});        // ptest (%rsp),%xmm0
  check_has_no_effect({0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08});        // palignr
  check_has_no_effect({0x66, 0x0f, 0x3a, 0x63, 0x44, 0x24, 0x08, 0x0c});  // pcmpistri
  check_has_no_effect({0xc5, 0xf8, 0x77});                                // vzeroupper
  check_has_no_effect({0xc5, 0xfc, 0x77});                                // vzeroall
  check_has_no_effect({0xc5, 0xfe, 0x6f, 0x44, 0x24, 0x20});  // vmovdqu 0x20(%rsp),%ymm0
  check_has_no_effect({0xc5, 0xfd, 0x70, 0xc0, 0x4e});        // vpshufd
  check_has_no_effect({0xc5, 0xf4, 0xc2, 0xc0, 0x01});        // vcmpltps
  check_has_no_effect({0xc4, 0xe2, 0x7d, 0x78, 0xc0});        // vpbroadcastb
  check_has_no_effect({0xc4, 0xe3, 0x7d, 0x39, 0xc1, 0x01});  // vextracti128
  check_has_no_effect({0xc4, 0xe3, 0xf9, 0x32, 0xc8, 0x08});  // kshiftlq $8,%k0,%k1
  check_has_no_effect({0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1});  // vmovaps %zmm1,%zmm0
  check_has_no_effect(
      {0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x44, 0x24, 0x01});  // vmovdqu64 64(%rsp),%zmm0
  check_has_no_effect({0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x05, 1, 0, 0, 0});  // vmovdqu64 1(%rip),%zmm0
  check_has_no_effect({0x62, 0xf2, 0x7d, 0x48, 0x78, 0xc0});              // vpbroadcastb
  check_has_no_effect({0x62, 0xf3, 0x75, 0x48, 0x25, 0xc2, 0x96});        // vpternlogd
  check_has_no_effect({0x62, 0xf1, 0x7d, 0x48, 0x72, 0xe1, 0x05});        // vpsrad $5,%zmm1,%zmm0
  check_has_no_effect({0x62, 0xf5, 0x74, 0x48, 0x58, 0xc2});              // vaddph: map 5
  check_has_no_effect({0x62, 0xf6, 0x75, 0x48, 0x98, 0xc2});              // vfmadd132ph: map 6
  check_has_no_effect({0x8f, 0xe8, 0x78, 0xc2, 0xec, 0x0e});  // vprotd $0xe,%xmm4,%xmm5: XOP
  check_has_no_effect({0x8f, 0xe9, 0x78, 0x81, 0xc1});        // vfrczpd: XOP
}

TEST_CASE("a REX that another prefix stands behind says nothing") {
  check_effect({0x48, 0x66, 0xb8, 1, 0}, X86Effect::None);  // mov $1,%ax
  check_effect({0x41, 0x40, 0x55}, X86Effect::PushFp);
  check_effect({0x41, 0xf3, 0x5d}, X86Effect::PopFp);
}

TEST_CASE("registers of the kernel have no memory operand") {
  check_has_no_effect({0x0f, 0x20, 0xc0});  // mov %cr0,%rax
  // Whatever its upper bits say: not even a SIB byte or a displacement follows.
  for (const int mod_rm : {0x87, 0x04, 0x44, 0x84, 0x05}) {
    check_has_no_effect({0x0f, 0x23, mod_rm});  // mov %rdi,%db0 and the like
  }
}

TEST_CASE("no instruction is longer than 15 bytes") {
  std::vector<std::byte> code(14, std::byte{0x66});
  code.push_back(std::byte{0x90});
  REQUIRE(decode_x86(code).has_value());
  CHECK(int{decode_x86(code)->size_bytes} == 15);
  code.insert(code.begin(), std::byte{0x66});
  CHECK_FALSE(decode_x86(code).has_value());
  CHECK_FALSE(decode_x86(std::vector<std::byte>(64, std::byte{0x66})).has_value());
  CHECK_FALSE(decode_x86(std::vector<std::byte>(64, std::byte{0x48})).has_value());
  // The last bytes are those of the immediate.
  std::vector<std::byte> add =
      instruction_bytes({0x2e, 0x2e, 0x2e, 0x2e, 0x48, 0x81, 0x84, 0x24, 0, 1, 0, 0, 1, 2, 3, 4});
  CHECK_FALSE(decode_x86(add).has_value());
  add.erase(add.begin());
  CHECK(decode_x86(add).has_value());
}

TEST_CASE("what 64-bit mode does not have is no instruction") {
  for (const int opcode : {0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37,
                           0x3f, 0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd5, 0xd6, 0xea}) {
    check_is_none({opcode});
  }
  for (const int opcode : {0x04, 0x0a, 0x0c, 0x24, 0x27, 0x36, 0x39, 0x3b, 0x3f}) {
    check_is_none({0x0f, opcode});
  }
  check_is_none({0xc4, 0xe0, 0x78, 0x10});        // VEX of map 0
  check_is_none({0xc4, 0xff, 0x78, 0x10});        // of map 31
  check_is_none({0x62, 0xf0, 0x7c, 0x48, 0x28});  // EVEX of map 0
}
