// realigned [WALL_SECONDS [ITERATIONS]]: without unwind tables, below functions that realign their stack, and in
// signal handlers.
#include "work.h"

#include <alloca.h>
#include <signal.h>
#include <string.h>

static uint64_t g_iterations;  // of each piece of work

TARGET_FUNCTION void burn_realigned(void) { burn(g_iterations, 3); }

// With alloca() the frame can be found neither by the stack pointer nor by the frame pointer.
TARGET_FUNCTION void realign(size_t size_bytes) {
  _Alignas(64) volatile char line[64];
  char* const room = alloca(size_bytes);
  memset(room, 1, size_bytes);
  line[0] = room[size_bytes - 1];
  burn_realigned();
  g_sink += (uint64_t)line[0] + (uint64_t)room[0];
}

// Its frame is found from where the stack was before.
TARGET_FUNCTION void below_realigned(size_t size_bytes) {
  volatile char bytes[40];
  bytes[0] = 1;
  realign(size_bytes + (size_t)bytes[0]);
  bytes[1] = 2;
}

TARGET_FUNCTION void burn_in_handler(void) { burn(g_iterations, 5); }

TARGET_FUNCTION void handler(int number) {
  burn_in_handler();
  g_sink += (uint64_t)number;
}

TARGET_FUNCTION void leaf_handler(int number) { burn(g_iterations, (uint64_t)number); }

TARGET_FUNCTION void send_signals(void) {
  raise(SIGUSR1);
  raise(SIGUSR2);
  g_sink = 0;
}

TARGET_FUNCTION void run_round(size_t round) {
  below_realigned(20 + round % 8);
  send_signals();
  g_sink = 1;
}

int main(int argc, char** argv) {
  signal(SIGUSR1, handler);
  signal(SIGUSR2, leaf_handler);
  g_iterations = (uint64_t)number_argument(argc, argv, 2, 100000);
  const double end = wall_seconds() + number_argument(argc, argv, 1, 1.0);
  for (size_t round = 0; wall_seconds() < end; ++round) run_round(round);
  return 0;
}
