// gcc -O2 -static -nostdlib -ffreestanding. A local of 64 bytes alignment beside one of unknown
// size: gcc keeps the incoming stack pointer in r10 and on the stack, and the CFA is an expression
// (breg6 -8; deref), as is the place of rbp.
#include "freestanding.h"

__attribute__((noinline)) static void trap(char* bytes) {
  fill(bytes, 1, 64);
  __asm__ volatile("int3");
}
int main(int argc, char** argv) {
  (void)argv;
  _Alignas(64) char bytes[64];
  volatile char more[argc * 32];
  more[0] = 1;
  trap(bytes);
  return bytes[5] + more[0];
}
