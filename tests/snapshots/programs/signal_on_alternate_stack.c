// gcc -O2 -static. The handler's stack is in .bss; the interrupted one is not copied.
#include <signal.h>
#include <stddef.h>
static char stack[65536];
static void handler(int number) {
  (void)number;
  __asm__ volatile("int3");
}
__attribute__((noinline)) static void fault(void) { __asm__ volatile("ud2"); }
int main(void) {
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  sigaltstack(&alternate, NULL);
  sigaction(SIGILL, &action, NULL);
  fault();
  return 0;
}
