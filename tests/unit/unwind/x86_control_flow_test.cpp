// What instructions do to where the code goes on.
#include "x86_checks.h"

using namespace sentry_prof;
using namespace sentry_prof::test;
using namespace sentry_prof::unwind;

TEST_CASE("returns") {
  check_effect({0xc3}, X86Effect::Return);
  check_effect({0xf3, 0xc3}, X86Effect::Return);  // rep ret
  check_effect({0xf2, 0xc3}, X86Effect::Return);  // bnd ret
  check_effect({0xc2, 0x08, 0x00}, X86Effect::Return, 8);
}

TEST_CASE("jumps and branches say how far") {
  check_effect({0xeb, 0xfe}, X86Effect::Jump, -2);
  check_effect({0xeb, 0x10}, X86Effect::Jump, 0x10);
  check_effect({0xe9, 0x78, 0x56, 0x34, 0x12}, X86Effect::Jump, 0x12345678);
  check_effect({0xf2, 0xe9, 0, 0, 0, 0x80}, X86Effect::Jump, INT32_MIN);  // bnd
  for (int condition = 0; condition < 16; ++condition) {
    check_effect({0x70 + condition, 0x80}, X86Effect::Branch, -0x80);
    check_effect({0x0f, 0x80 + condition, 0xfb, 0xff, 0xff, 0xff}, X86Effect::Branch, -5);
  }
  check_effect({0x3e, 0x74, 0x05}, X86Effect::Branch, 5);  // je,pt
  check_effect({0xe2, 0xf0}, X86Effect::Branch, -0x10);    // loop
  check_effect({0xe3, 0x02}, X86Effect::Branch, 2);        // jrcxz
}

TEST_CASE("jumps by pointers, registers and tables") {
  check_effect({0xff, 0x25, 0xe4, 0x2f, 0, 0}, X86Effect::JumpByPointer);        // jmp *x(%rip)
  check_effect({0xf2, 0xff, 0x25, 0xe4, 0x2f, 0, 0}, X86Effect::JumpByPointer);  // bnd
  check_effect({0xff, 0xe0}, X86Effect::JumpElsewhere);                          // *%rax
  check_effect({0x41, 0xff, 0xe5}, X86Effect::JumpElsewhere);                    // *%r13
  check_effect({0x3e, 0xff, 0xe0}, X86Effect::JumpElsewhere);                    // notrack
  check_effect({0x3e, 0x41, 0xff, 0xe3}, X86Effect::JumpElsewhere);
  check_effect({0xff, 0x60, 0x18}, X86Effect::JumpElsewhere);            // *0x18(%rax)
  check_effect({0xff, 0x65, 0x00}, X86Effect::JumpElsewhere);            // *0(%rbp)
  check_effect({0xff, 0x24, 0xc5, 0, 0x10, 0x40, 0}, X86Effect::Stops);  // *x(,%rax,8)
  check_effect({0xff, 0x2d, 0, 0, 0, 0}, X86Effect::Stops);              // ljmp *0(%rip)
}

TEST_CASE("calls go on behind themselves") {
  check_has_no_effect({0xe8, 0, 1, 0, 0});
  check_has_no_effect({0x67, 0xe8, 0, 1, 0, 0});              // as linkers relax indirect ones
  check_has_no_effect({0x66, 0x66, 0x48, 0xe8, 0, 1, 0, 0});  // of __tls_get_addr
  check_has_no_effect({0xff, 0xd0});                          // *%rax
  check_has_no_effect({0x41, 0xff, 0xd4});                    // *%r12
  check_has_no_effect({0xff, 0xd5});                          // *%rbp
  check_has_no_effect({0xff, 0x15, 0, 1, 0, 0});              // *x(%rip)
  check_has_no_effect({0x66, 0x48, 0xff, 0x15, 0, 1, 0, 0});
  check_has_no_effect({0xff, 0x54, 0x24, 0x08});              // *8(%rsp)
  check_has_no_effect({0x42, 0xff, 0x94, 0xe3, 0, 1, 0, 0});  // *0x100(%rbx,%r12,8)
}

TEST_CASE("calls of the kernel") {
  check_effect({0x0f, 0x05}, X86Effect::CallsKernel);  // syscall
  check_effect({0x0f, 0x34}, X86Effect::CallsKernel);  // sysenter
  check_effect({0xcd, 0x80}, X86Effect::CallsKernel);  // int $0x80
}

TEST_CASE("instructions that nothing comes behind") {
  check_effect({0xf4}, X86Effect::Traps);        // hlt
  check_effect({0x0f, 0x0b}, X86Effect::Traps);  // ud2
  check_effect({0x67, 0x0f, 0xb9, 0x40, 0x02},
               X86Effect::Traps);                      // ud1 2(%eax),%eax: clang's traps
  check_effect({0x0f, 0xff, 0xc0}, X86Effect::Traps);  // ud0
  check_effect({0xcc}, X86Effect::Traps);              // int3
  check_effect({0xcb}, X86Effect::Stops);              // lret
  check_effect({0x48, 0xcf}, X86Effect::Stops);        // iretq
}
