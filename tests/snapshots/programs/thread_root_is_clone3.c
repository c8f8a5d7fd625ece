// gcc -O2 -static -nostdlib -ffreestanding. The end of a thread's stack is stated in clone3, as C
// libraries do: return address undefined.
#include "freestanding.h"

#include <asm/unistd.h>
#include <linux/sched.h>

// Starts a thread that calls start_thread on the stack of `arguments`. The child, which has no
// caller there, gets unwind information of its own.
__asm__(
    ".text\n"
    ".type clone3,@function\n"
    "clone3: .cfi_startproc\n"
    " mov $435,%eax\n"
    " syscall\n"
    " test %rax,%rax\n"
    " jz 1f\n"
    " ret\n"
    " .cfi_endproc\n"
    " .cfi_startproc\n"
    " .cfi_undefined rip\n"
    "1: call start_thread\n"
    " hlt\n"
    " .cfi_endproc\n"
    ".size clone3,.-clone3\n");
long clone3(const struct clone_args* arguments, unsigned long size_bytes);

__attribute__((noinline)) static int run(void) {
  __asm__ volatile("int3");
  return 0;
}
void start_thread(void) {
  const long status = run();
  system_call(__NR_exit, (const void*)status, 0, 0, 0);
}

static _Alignas(16) char stack[4096];
int main(void) {
  const struct clone_args arguments = {
      .flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
      .stack = (unsigned long)stack,
      .stack_size = sizeof stack};
  clone3(&arguments, sizeof arguments);
  return (int)system_call(__NR_pause, 0, 0, 0, 0);
}
