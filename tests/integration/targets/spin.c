// spin [CPU_SECONDS]: one busy thread with known shares: alpha 60 %, beta 30 %, gamma 10 % of its
// CPU time, by counted work. Also linked stripped, statically, without .eh_frame_hdr, without a
// build id, and so on (see meson.build).
#include "work.h"

TARGET_FUNCTION void alpha(uint64_t unit) { burn(6 * unit, 3); }
TARGET_FUNCTION void beta(uint64_t unit) { burn(3 * unit, 5); }
TARGET_FUNCTION void gamma_(uint64_t unit) __asm__("gamma");
TARGET_FUNCTION void gamma_(uint64_t unit) { burn(unit, 7); }

// Rounds of changing length (0.1 to 2 ms), so that no sampling period keeps step with them.
TARGET_FUNCTION void spin_rounds(double cpu_seconds) {
  uint64_t random = 1;
  while (process_cpu_seconds() < cpu_seconds) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const uint64_t unit = 5000 + (random >> 48);
    alpha(unit);
    beta(unit);
    gamma_(unit);
  }
}

int main(int argc, char** argv) {
  spin_rounds(number_argument(argc, argv, 1, 1.0));
  return 0;
}
