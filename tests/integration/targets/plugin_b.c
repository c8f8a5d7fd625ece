// The other library of dlopen_loop. The code in front of plugin_b_inner is there so that the
// addresses at which plugin_a has its functions belong to something else here: a stale image or a
// stale unwind rule gives visibly wrong frames.
#include "work.h"

TARGET_FUNCTION uint64_t plugin_b_padding(const uint64_t* values, uint64_t count) {
  uint64_t buffer[32] = {0};
  for (uint64_t i = 0; i < count; ++i) buffer[(values[i] ^ i) % 32] += values[i];
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 32; ++i) sum ^= buffer[i] << (i % 7);
  return sum;
}

TARGET_FUNCTION void plugin_b_inner(void) {
  uint64_t scratch[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  burn(4 * ITERATIONS_OF_5_MS, 41 + plugin_b_padding(scratch, 8) % 2);
}

TARGET_FUNCTION void plugin_run(void) {
  plugin_b_inner();
  g_sink = 0;
}
