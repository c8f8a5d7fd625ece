// altstack [WALL_SECONDS]: burns CPU in burn_outside; every 10 ms a signal handler that runs on an
// alternate signal stack burns about 5 ms in burn_in_handler. A whole stack goes from
// burn_in_handler over the signal frame to burn_outside and main.
//
// With HANDLER_FLAGS=0 the handler runs on the usual stack.
#define _GNU_SOURCE
#include "work.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>

#ifndef HANDLER_FLAGS
#define HANDLER_FLAGS SA_ONSTACK
#endif

static unsigned char g_stack[65536] __attribute__((aligned(16)));

TARGET_FUNCTION void burn_in_handler(void) { burn(ITERATIONS_OF_5_MS, 47); }

TARGET_FUNCTION void on_alarm(int unused) {
  (void)unused;
  burn_in_handler();
  g_sink = 0;
}

TARGET_FUNCTION void burn_outside(double end) {
  while (wall_seconds() < end) burn(100000, 53);
}

static int start_alarms(void) {
  stack_t stack;
  memset(&stack, 0, sizeof stack);
  stack.ss_sp = g_stack;
  stack.ss_size = sizeof g_stack;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;
  action.sa_flags = HANDLER_FLAGS | SA_RESTART;
  const struct itimerval every_10_ms = {{0, 10000}, {0, 10000}};
  return sigaltstack(&stack, NULL) == 0 && sigaction(SIGALRM, &action, NULL) == 0 &&
         setitimer(ITIMER_REAL, &every_10_ms, NULL) == 0;
}

int main(int argc, char** argv) {
  const double end = wall_seconds() + number_argument(argc, argv, 1, 1.0);
  if (!start_alarms()) return 1;
  burn_outside(end);
  return 0;
}
