// aarch64-linux-gnu-gcc -O2 -static -nostdlib -ffreestanding -mbranch-protection=pac-ret. The trap
// stands in a function like a PLT entry, without unwind information; x29 is its caller's.
#include "freestanding.h"

__asm__(".text\n.type entry,%function\nentry: brk #0\n ret\n.size entry,.-entry\n");
void entry(void);
__attribute__((noinline)) static int middle(int value) {
  entry();
  return value + 1;
}
int main(void) { return middle(1) + 1; }
