#include "cli/rule_text.h"

#include "sentry/rules.h"
#include "support/catch2.h"

namespace sentry_prof::cli {

TEST_CASE("Every rule explains itself") {
  for (const sentry::Rule& rule : sentry::all_rules()) {
    const auto text = explain(rule.id);
    REQUIRE(text);
    CHECK(text->starts_with(std::string(rule.id) + " ("));
    CHECK(text->find("\n  what to do: ") != std::string::npos);
    CHECK(explain("all")->find(*text) != std::string::npos);
  }
}

TEST_CASE("A reason of the server leads to its rules") {
  const auto text = explain("profiling_invalid_json");
  REQUIRE(text);
  CHECK(text->find("\n  json-syntax ") != std::string::npos);
  CHECK(explain("profiling_not_enough_samples")->find("enough-samples") != std::string::npos);
}

TEST_CASE("An unknown rule is answered with the nearest ones") {
  const auto text = explain("json-sintax");
  REQUIRE_FALSE(text);
  CHECK(text.error().message.find("Nearest: json-syntax,") != std::string::npos);
  CHECK(explain("sampels").error().message.find("-samples") != std::string::npos);
  CHECK_FALSE(explain(""));
  CHECK_FALSE(explain(std::string(1'000'000, 'x')));
}

}  // namespace sentry_prof::cli
