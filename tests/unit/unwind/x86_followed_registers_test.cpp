// The registers that the stack pointer comes from: which of them an instruction writes, and the
// stack pointer from one of them.
#include "x86_checks.h"

using namespace sentry_prof;
using namespace sentry_prof::test;
using namespace sentry_prof::unwind;

namespace {

void check_writes(std::initializer_list<int> bytes, X86Registers kept) {
  const std::vector<std::byte> code = instruction_bytes(bytes);
  INFO(instruction_hex(code));
  const auto instruction = decode_x86(code);
  REQUIRE(instruction.has_value());
  CHECK(instruction->writes == kept);
}

}  // namespace

TEST_CASE("the stack pointer from another register") {
  const auto check_from = [](std::initializer_list<int> bytes, int number, int32_t operand) {
    check_effect(bytes, X86Effect::SpFromRegister, operand);
    check_writes(bytes, 0);
    CHECK(int{decode_x86(instruction_bytes(bytes))->source} == number);
  };
  check_from({0x48, 0x89, 0xdc}, 3, 0);                                   // mov %rbx,%rsp
  check_from({0x4c, 0x89, 0xfc}, 15, 0);                                  // mov %r15,%rsp
  check_from({0x49, 0x8d, 0x24, 0x24}, 12, 0);                            // lea (%r12),%rsp
  check_from({0x49, 0x8d, 0x65, 0x08}, 13, 8);                            // lea 8(%r13),%rsp
  check_from({0x49, 0x8d, 0x62, 0xf8}, 10, -8);                           // lea -8(%r10),%rsp
  check_effect({0x89, 0xdc}, X86Effect::OverwritesSp);                    // mov %ebx,%esp
  check_effect({0x4c, 0x89, 0xdc}, X86Effect::OverwritesSp);              // mov %r11,%rsp
  check_effect({0x4a, 0x8d, 0x64, 0x33, 0x08}, X86Effect::OverwritesSp);  // lea 8(%rbx,%r14),%rsp
}

TEST_CASE("which of these registers are written") {
  constexpr X86Registers kBx = 1u << 3, k10 = 1u << 10, k11 = 1u << 11, k12 = 1u << 12;
  check_writes({0x5b}, kBx);                                // pop %rbx
  check_writes({0x66, 0x5b}, kBx);                          // pop %bx
  check_writes({0x41, 0x5f}, 1u << 15);                     // pop %r15
  check_writes({0xb7, 0x01}, kBx);                          // mov $1,%bh
  check_writes({0x0f, 0x94, 0xc3}, kBx);                    // sete %bl
  check_writes({0x48, 0x8b, 0x1c, 0x24}, kBx);              // mov (%rsp),%rbx
  check_writes({0x4c, 0x8d, 0x64, 0x24, 0x08}, k12);        // lea 8(%rsp),%r12
  check_writes({0x49, 0xff, 0xc5}, 1u << 13);               // inc %r13
  check_writes({0x48, 0x0f, 0x44, 0xd8}, kBx);              // cmove %rax,%rbx
  check_writes({0x0f, 0xa2}, kBx);                          // cpuid
  check_writes({0xf3, 0x48, 0x0f, 0xae, 0xc3}, kBx);        // rdfsbase %rbx
  check_writes({0xf3, 0x48, 0x0f, 0x1e, 0xcb}, kBx);        // rdsspq %rbx
  check_writes({0xc4, 0xc1, 0xf9, 0x7e, 0xc6}, 1u << 14);   // vmovq %xmm0,%r14
  check_writes({0x4c, 0x87, 0xe3}, kBx | k12);              // xchg %r12,%rbx
  check_writes({0xc4, 0x62, 0xe3, 0xf6, 0xe0}, kBx | k12);  // mulx %rax,%rbx,%r12
  check_writes({0x4c, 0x8d, 0x54, 0x24, 0x08}, k10);        // lea 8(%rsp),%r10
  check_writes({0x41, 0x5a}, k10);                          // pop %r10
  check_writes({0x4d, 0x8b, 0x1b}, k11);                    // mov (%r11),%r11
  check_writes({0xe8, 0, 0, 0, 0}, k10 | k11);              // call
  check_writes({0xff, 0xd0}, k10 | k11);                    // call *%rax
  check_writes({0x53}, 0);                                  // push %rbx
  check_writes({0x48, 0x39, 0xd8}, 0);                      // cmp %rbx,%rax
  check_writes({0x48, 0x89, 0xd8}, 0);                      // mov %rbx,%rax
  check_writes({0x48, 0x89, 0x1f}, 0);                      // mov %rbx,(%rdi)
  check_writes({0xf3, 0x48, 0x0f, 0xae, 0xd3}, 0);          // wrfsbase %rbx
  check_writes({0xc5, 0xfd, 0x6f, 0x1f}, 0);                // vmovdqa (%rdi),%ymm3
}

TEST_CASE("words of the stack in %r10") {
  check_effect({0x41, 0x52}, X86Effect::PushR10);                   // push %r10
  check_effect({0x41, 0xff, 0xf2}, X86Effect::PushR10);             // its long form
  check_effect({0x52}, X86Effect::Push);                            // push %rdx
  check_effect({0x41, 0xff, 0x72, 0xf8}, X86Effect::Push);          // push -8(%r10)
  check_effect({0x41, 0x5a}, X86Effect::PopR10);                    // pop %r10
  check_effect({0x4c, 0x8b, 0x55, 0xf8}, X86Effect::LoadsR10, -8);  // mov -8(%rbp),%r10
  check_writes({0x4c, 0x8b, 0x55, 0xf8}, 1u << 10);
  check_effect({0x44, 0x8b, 0x55, 0xf8}, X86Effect::None);        // mov -8(%rbp),%r10d
  check_effect({0x4c, 0x8b, 0x54, 0x1d, 0xf8}, X86Effect::None);  // mov -8(%rbp,%rbx),%r10
  check_effect({0x66, 0x41, 0x5a}, X86Effect::OverwritesSp);      // pop %r10w
}
