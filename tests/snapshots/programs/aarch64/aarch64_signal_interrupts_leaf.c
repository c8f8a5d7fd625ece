// aarch64-linux-gnu-gcc -O2 -static -nostdlib -ffreestanding -mbranch-protection=pac-ret. The
// handler interrupts a leaf at its first instruction. It returns to code without unwind
// information, as musl's and the vdso's (since Linux 5.8) is.
#include "freestanding.h"

#include <asm/unistd.h>

__asm__(
    ".text\n.type other,%function\nother: .cfi_startproc\n sub sp,sp,#80\n .cfi_def_cfa_offset 80\n"
    " udf #0\n .cfi_endproc\n.size other,.-other\n"
    ".type fault,%function\nfault: .cfi_startproc\n udf #0\n ret\n .cfi_endproc\n"
    ".size fault,.-fault\n"
    // A section of its own, which make-snapshot keeps.
    ".section .signal_return,\"ax\",%progbits\n"
    ".type signal_return,%function\n"
    " nop\n"
    "signal_return: mov x8,#139\n svc #0\n"
    ".size signal_return,.-signal_return\n"
    ".text\n");
void fault(void);
void signal_return(void);

static void handler(int number) {
  (void)number;
  __asm__ volatile("brk #0");
}

// The kernel's (asm-generic/signal.h). SA_RESTORER is 0x04000000, SIGILL 4.
struct action {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)(void);
  unsigned long mask;
};

int main(void) {
  const struct action action = {handler, 0x04000000, signal_return, 0};
  system_call(__NR_rt_sigaction, 4, &action, 0, sizeof action.mask);
  fault();
  return 0;
}
