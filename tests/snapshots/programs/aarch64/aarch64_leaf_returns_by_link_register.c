// aarch64-linux-gnu-gcc -O2 -static -nostdlib -ffreestanding -mbranch-protection=pac-ret. The trap
// stands in a function that touches neither sp nor x29 nor x30; its callers' return addresses are
// signed.
#include "freestanding.h"

__asm__(
    ".text\n.type leaf,%function\nleaf: .cfi_startproc\n brk #0\n ret\n .cfi_endproc\n"
    ".size leaf,.-leaf\n");
void leaf(void);
__attribute__((noinline)) static int middle(int value) {
  leaf();
  return value + 1;
}
int main(void) { return middle(1) + 1; }
