// Catch2's runner, compiled once: of v2 it is the whole library, the longest to compile of all. The
// exit status: how many tests failed, at most 255; 77 if none did and some were skipped
// (support/skips.h), which is Meson's convention.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "support/catch2.h"
#include "support/skips.h"

namespace {
constexpr int kSkipped = 77;
}

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  return failed == 0 && sentry_prof::testing::was_skipped() ? kSkipped : failed;
}
