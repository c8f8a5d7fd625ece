// aarch64-linux-gnu-gcc -O2 -static -nostdlib -ffreestanding -mbranch-protection=pac-ret. The trap
// stands where x30 is signed already and not yet, or no more, on the stack.
#include "freestanding.h"

__asm__(
    ".text\n.type signing,%function\nsigning: .cfi_startproc\n"
    " hint #25\n"  // paciasp
    " .cfi_negate_ra_state\n"
    " brk #0\n"
    " hint #29\n"  // autiasp
    " .cfi_negate_ra_state\n"
    " ret\n .cfi_endproc\n.size signing,.-signing\n");
void signing(void);
int main(void) {
  signing();
  return 1;
}
