// gcc -O2 -static -nostdlib -ffreestanding. The handler's stack is in .bss; the interrupted one is
// not copied.
#include "signal_return.h"

static char stack[65536];
static void handler(int number) {
  (void)number;
  __asm__ volatile("int3");
}
__attribute__((noinline)) static void fault(void) { __asm__ volatile("ud2"); }
int main(void) {
  const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  system_call(__NR_sigaltstack, &alternate, 0, 0, 0);
  handle_signal(SIGILL, handler, SA_ONSTACK);
  fault();
  return 0;
}
