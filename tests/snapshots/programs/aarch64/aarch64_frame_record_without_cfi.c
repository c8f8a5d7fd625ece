// aarch64-linux-gnu-gcc -O2 -static -nostdlib -ffreestanding -mbranch-protection=pac-ret.
// `generated` stands for a JIT's code: no unwind information, its frame record at the lower end of
// its frame. So its caller's stack pointer cannot be known from x29, and that caller's CFA is
// sp-based.
#include "freestanding.h"

__asm__(
    ".text\n.type leaf,%function\nleaf: .cfi_startproc\n brk #0\n ret\n .cfi_endproc\n"
    ".size leaf,.-leaf\n"
    ".type generated,%function\n"
    "generated: stp x29,x30,[sp,#-96]!\n"
    " mov x29,sp\n"
    " bl leaf\n"
    " ldp x29,x30,[sp],#96\n"
    " ret\n"
    ".size generated,.-generated\n");
void generated(void);
__attribute__((noinline)) static int middle(int value) {
  char room[64];
  __asm__ volatile("" : : "r"(room) : "memory");
  generated();
  return value + 1;
}
int main(void) { return middle(1) + 1; }
