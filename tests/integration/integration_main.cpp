// main() of the integration tests: Catch2's, and exit status 77 where something was skipped.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "prerequisites.h"
#include "support/catch2.h"

namespace {
constexpr int kSkipped = 77;  // Meson's convention
}

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  if (failed == 0 && sentry_prof::testing::was_skipped()) return kSkipped;
  return failed;
}
