// Signals without a C library: handling one, and returning to what it interrupted.
#pragma once

#include "freestanding.h"

#include <asm/signal.h>
#include <asm/unistd.h>

// Where a handler returns to: rsp points at the kernel's struct ucontext there, whose machine
// context begins at byte 40 (asm/ucontext.h, asm/sigcontext.h) and holds each register at the
// offset below. The CFA is the interrupted rsp: def_cfa_expression (breg7 160; deref); the others
// are `expression` (breg7 offset). A C library's has the same form. The nop is for those that look
// up the byte before a return address.
__asm__(
    ".macro saved_at register, offset\n"
    " .cfi_escape 0x10,\\register,3,0x77,(\\offset & 0x7f) | 0x80,\\offset >> 7\n"
    ".endm\n"
    ".text\n"
    ".cfi_startproc simple\n"
    " .cfi_signal_frame\n"
    " .cfi_escape 0x0f,4,0x77,(160 & 0x7f) | 0x80,160 >> 7,0x06\n"
    " saved_at 3,128\n"   // rbx
    " saved_at 6,120\n"   // rbp
    " saved_at 12,72\n"   // r12
    " saved_at 13,80\n"   // r13
    " saved_at 14,88\n"   // r14
    " saved_at 15,96\n"   // r15
    " saved_at 16,168\n"  // rip
    " nop\n"
    ".type signal_return,@function\n"
    "signal_return:\n"
    " mov $15,%eax\n"  // rt_sigreturn
    " syscall\n"
    ".cfi_endproc\n"
    ".size signal_return,.-signal_return\n");
void signal_return(void);

static inline void handle_signal(int number, void (*handler)(int), unsigned long flags) {
  const struct sigaction action = {
      .sa_handler = handler, .sa_flags = flags | SA_RESTORER, .sa_restorer = signal_return};
  system_call(__NR_rt_sigaction, (const void*)(long)number, &action, 0, sizeof action.sa_mask);
}
