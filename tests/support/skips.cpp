#include "support/skips.h"

#include "support/catch2.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace sentry_prof::testing {

namespace {

bool g_was_skipped = false;

bool may_not_skip() {
  const char* value = std::getenv("SENTRY_PROF_REQUIRE_PERF");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace

void note_skip(const std::string& reason) {
  if (may_not_skip()) FAIL("may not be skipped here (SENTRY_PROF_REQUIRE_PERF): " << reason);
  note_optional_skip(reason);
}

void note_optional_skip(const std::string& reason) {
  g_was_skipped = true;
  std::printf("skipped: %s\n", reason.c_str());
  SUCCEED(reason);
}

bool was_skipped() { return g_was_skipped; }

}  // namespace sentry_prof::testing
