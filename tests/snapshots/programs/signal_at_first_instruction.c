// gcc -O2 -static -nostdlib -ffreestanding. The handler interrupts `fault` at its first
// instruction: looked up at pc - 1, the frame would be another function's.
#include "signal_return.h"

__asm__(
    ".text\n.type other,@function\nother: .cfi_startproc\n sub $72,%rsp\n .cfi_adjust_cfa_offset "
    "72\n ud2\n"
    " .cfi_endproc\n.size other,.-other\n"
    ".type fault,@function\nfault: .cfi_startproc\n ud2\n ret\n .cfi_endproc\n.size fault,.-fault");
void fault(void);
static void handler(int number) {
  (void)number;
  __asm__ volatile("int3");
}
int main(void) {
  handle_signal(SIGILL, handler, 0);
  fault();
  return 0;
}
