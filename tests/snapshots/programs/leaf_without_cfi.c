// gcc -O2 -fno-omit-frame-pointer -static -nostdlib -ffreestanding. The trap stands in code without
// unwind information, as a PLT entry of a static program is: its frame pointer is its caller's, so
// who goes by that finds call_main and skips main.
#include "freestanding.h"

__asm__(".text\n.type leaf,@function\nleaf: int3\n nop\n ret\n.size leaf,.-leaf");
void leaf(void);
int main(void) {
  leaf();
  return 1;
}
