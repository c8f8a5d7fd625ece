#include "sentry/attribute_rules.h"

#include "support/catch2.h"

#include <string>

using namespace sentry_prof;

TEST_CASE("Releases and environments as people name them are taken") {
  for (const char* release : {"", "shop@1.2.3+build.5", "main 2026", "v1", "frontend:abc", "é"}) {
    CHECK(check_release(release));
  }
  for (const char* environment : {"", "production", "pre prod", "eu-1"}) {
    CHECK(check_environment(environment));
  }
}

TEST_CASE("A release is as long as Sentry takes it, and no longer") {
  CHECK(check_release(std::string(200, 'x')));
  const auto longer = check_release(std::string(201, 'x'));
  REQUIRE_FALSE(longer);
  CHECK(longer.error().message == "has 201 bytes, Sentry takes at most 200");
  CHECK(check_environment(std::string(64, 'x')));
  CHECK_FALSE(check_environment(std::string(65, 'x')));
}

TEST_CASE("Slashes, control characters and reserved names are refused") {
  for (const char* text : {"a/b", "a\\b", "a\nb", "a\tb", "\x7f", "\x1b[31m", ".", ".."}) {
    INFO(text);
    CHECK_FALSE(check_release(text));
    CHECK_FALSE(check_environment(text));
  }
  CHECK_FALSE(check_release("Latest"));
  CHECK(check_release("none"));
  CHECK_FALSE(check_environment("None"));
  CHECK(check_environment("latest"));
  CHECK_FALSE(check_release("  "));
}
