// main() of the integration tests: Catch2's, and exit status 77 where something was skipped.
#include "prerequisites.h"
#include "support/catch_runner.h"

namespace {
constexpr int kSkipped = 77;  // Meson's convention
}

int main(int argc, char** argv) {
  const int failed = sentry_prof::testing::run_tests(argc, argv);
  if (failed == 0 && sentry_prof::testing::was_skipped()) return kSkipped;
  return failed;
}
