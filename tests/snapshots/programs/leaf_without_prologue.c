// gcc -O2 -static -nostdlib -ffreestanding. The trap stands in a function that touches neither rsp
// nor rbp.
#include "freestanding.h"

__asm__(
    ".text\n.type leaf,@function\nleaf: .cfi_startproc\n int3\n nop\n ret\n .cfi_endproc\n.size "
    "leaf,.-leaf");
void leaf(void);
int main(void) {
  leaf();
  return 1;
}
