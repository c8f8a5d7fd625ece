// As ../freestanding.h, for aarch64. All of it is built with -mbranch-protection=pac-ret: return
// addresses on the stack are signed.
#pragma once

// The first code of the process has no caller; its unwind information says so.
__asm__(
    ".text\n"
    ".globl _start\n"
    ".type _start,%function\n"
    "_start: .cfi_startproc\n"
    " .cfi_undefined x30\n"
    " mov x29,#0\n"
    " mov x30,#0\n"
    " bl call_main\n"
    " mov x8,#94\n"  // exit_group
    " svc #0\n"
    " .cfi_endproc\n"
    ".size _start,.-_start\n"
    // Has no frame pointer of its own: found only by one who has the right stack pointer.
    ".type call_main,%function\n"
    "call_main: .cfi_startproc\n"
    " str x30,[sp,#-48]!\n"
    " .cfi_def_cfa_offset 48\n"
    " .cfi_offset x30,-48\n"
    " bl main\n"
    " ldr x30,[sp],#48\n"
    " .cfi_def_cfa_offset 0\n"
    " .cfi_restore x30\n"
    " ret\n"
    " .cfi_endproc\n"
    ".size call_main,.-call_main\n");

// 0 or more, or an errno negated.
static inline long system_call(long number, long first, const void* second, const void* third,
                               long fourth) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = first;
  register const void* x1 __asm__("x1") = second;
  register const void* x2 __asm__("x2") = third;
  register long x3 __asm__("x3") = fourth;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
