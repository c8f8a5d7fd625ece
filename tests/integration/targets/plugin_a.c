// One of the two libraries that dlopen_loop loads by turns.
#include "work.h"

TARGET_FUNCTION void plugin_a_inner(void) { burn(4 * ITERATIONS_OF_5_MS, 37); }

TARGET_FUNCTION void plugin_run(void) {
  plugin_a_inner();
  g_sink = 0;
}
