// aarch64-linux-gnu-gcc -O2 -static -nostdlib -ffreestanding -mbranch-protection=pac-ret. The
// thread's first code has no unwind information and x29 = 0, as musl's and Go's have; its stack is its
// own, so that nothing stands above.
#include "freestanding.h"

__asm__(
    ".text\n.type leaf,%function\nleaf: .cfi_startproc\n brk #0\n ret\n .cfi_endproc\n"
    ".size leaf,.-leaf\n"
    ".type thread_start,%function\n"
    "thread_start: mov x29,#0\n"
    " adrp x9,thread_stack_end\n"
    " add x9,x9,:lo12:thread_stack_end\n"
    " mov sp,x9\n"
    " bl run\n"
    " udf #0\n"
    ".size thread_start,.-thread_start\n"
    ".bss\n.balign 16\n.skip 1024\nthread_stack_end: .skip 256\n.text\n");
void leaf(void);
int thread_start(void);
int run(void) {
  leaf();
  return 1;
}
int main(void) { return thread_start() + 1; }
