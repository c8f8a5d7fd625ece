// What spin.rawlog is a recording of: a static program without any library, so that the log holds
// nobody else's code. Linux on x86-64. docs/raw-log.md says how both were made.
//
// About 0.3 s of work: alpha 60 %, beta 30 %, gamma 10 %. Then it ends itself.
#include <stdint.h>

static volatile uint64_t g_sink;

// A chain of dependent multiplications: its cost is latency, whatever the compiler makes of it.
static inline __attribute__((always_inline)) void burn(uint32_t rounds, uint64_t seed) {
  uint64_t value = seed;
  for (uint32_t i = 0; i < rounds; ++i) {
    value = value * 6364136223846793005u + seed;
    __asm__ volatile("" : "+r"(value));
  }
  g_sink = value;
}

__attribute__((noipa)) void alpha(uint32_t rounds) { burn(6 * rounds, 3); }
__attribute__((noipa)) void beta(uint32_t rounds) { burn(3 * rounds, 5); }
__attribute__((noipa)) void gamma_(uint32_t rounds) __asm__("gamma");
__attribute__((noipa)) void gamma_(uint32_t rounds) { burn(rounds, 7); }

// Rounds of changing length (0.05 to 0.7 ms), so that no sampling period keeps step with them.
__attribute__((noipa)) void spin_rounds(uint32_t times) {
  uint64_t random = 1;
  for (uint32_t i = 0; i < times; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const uint32_t unit = 5000 + (uint32_t)(random >> 48);
    alpha(unit);
    beta(unit);
    gamma_(unit);
  }
}

__attribute__((noipa, noreturn)) void run(void) {
  spin_rounds(700);
  __asm__ volatile("syscall" : : "a"(231 /* exit_group */), "D"(0) : "rcx", "r11", "memory");
  __builtin_unreachable();
}

// The first code of the process has no caller; its unwind information says so.
__asm__(
    ".globl _start\n"
    ".type _start, @function\n"
    "_start:\n"
    "  .cfi_startproc\n"
    "  .cfi_undefined rip\n"
    "  call run\n"
    "  hlt\n"
    "  .cfi_endproc\n"
    ".size _start, . - _start\n");
