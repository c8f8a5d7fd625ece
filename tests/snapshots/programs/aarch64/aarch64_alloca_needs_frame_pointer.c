// aarch64-linux-gnu-gcc -O2 -static -nostdlib -ffreestanding -mbranch-protection=pac-ret. The
// CFA of `allocate` is given by x29.
#include "freestanding.h"

__asm__(
    ".text\n.type leaf,%function\nleaf: .cfi_startproc\n brk #0\n ret\n .cfi_endproc\n"
    ".size leaf,.-leaf\n");
void leaf(void);
__attribute__((noinline)) static int allocate(unsigned size) {
  char* room = __builtin_alloca(size);
  __asm__ volatile("" : : "r"(room) : "memory");
  leaf();
  return room[0];
}
int main(int argc, char** argv) {
  (void)argv;
  return allocate(32 + (unsigned)(argc & 15)) + 1;
}
