// Catch2's runner, compiled once: of v2 it is the whole library, the longest to compile of all.
#pragma once

namespace sentry_prof::testing {

// Runs the program's tests by Catch2's options: how many failed, at most 255.
int run_tests(int argc, char** argv);

}  // namespace sentry_prof::testing
