#include "support/catch_runner.h"

int main(int argc, char** argv) { return sentry_prof::testing::run_tests(argc, argv); }
