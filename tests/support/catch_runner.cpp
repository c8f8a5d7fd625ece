#include "support/catch_runner.h"

#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "support/catch2.h"

namespace sentry_prof::testing {

int run_tests(int argc, char** argv) { return Catch::Session().run(argc, argv); }

}  // namespace sentry_prof::testing
