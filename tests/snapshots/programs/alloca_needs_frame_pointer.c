// gcc -O2 -static -nostdlib -ffreestanding. Only rbp says where the frame of `allocate` begins.
#include "freestanding.h"

__asm__(
    ".text\n.type leaf,@function\nleaf: .cfi_startproc\n int3\n nop\n ret\n .cfi_endproc\n.size "
    "leaf,.-leaf");
void leaf(void);
__attribute__((noinline)) static char allocate(volatile int size) {
  char* bytes = __builtin_alloca(size);
  fill(bytes, 0x5a, size);
  leaf();
  return bytes[size - 1];
}
int main(int argc, char** argv) {
  (void)argv;
  return allocate(100 + argc * 17) + 1;
}
