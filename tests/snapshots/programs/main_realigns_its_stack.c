// gcc -O2 -static. A local of 64 bytes alignment: the CFA is an expression, read through rbp.
#include <string.h>
__attribute__((noinline)) static void trap(char* bytes) {
  memset(bytes, 1, 64);
  __asm__ volatile("int3");
}
int main(void) {
  _Alignas(64) char bytes[64];
  trap(bytes);
  return bytes[5];
}
