#include "cli/config_text.h"

#include "support/catch2.h"

#include <string>
#include <vector>

using sentry_prof::ErrorCode;
using namespace sentry_prof::cli;

namespace {

using Values = std::vector<std::string>;

std::vector<ConfigSetting> settings_of(const std::string& text) {
  auto settings = read_config(text, "c.toml");
  INFO(text);
  REQUIRE(settings);
  return std::move(*settings);
}

Values values_of(const std::string& value) {
  const auto settings = settings_of("name = " + value + "\n");
  REQUIRE(settings.size() == 1);
  return settings.front().values;
}

std::string problem_of(const std::string& text) {
  const auto settings = read_config(text, "c.toml");
  INFO(text);
  REQUIRE_FALSE(settings);
  CHECK(settings.error().code == ErrorCode::Malformed);
  return settings.error().message;
}

}  // namespace

TEST_CASE("A value of a config file is taken whole, quoted or not", "[config_text]") {
  CHECK(values_of(R"("v1#2")") == Values{"v1#2"});
  CHECK(values_of(R"("v1 #2" # a comment)") == Values{"v1 #2"});
  CHECK(values_of("v1#2") == Values{"v1#2"});
  CHECK(values_of("v1 # a comment") == Values{"v1"});
  CHECK(values_of("my env") == Values{"my env"});
  CHECK(values_of("a,b") == Values{"a,b"});
  CHECK(values_of("it's \"so\"") == Values{"it's \"so\""});
  CHECK(values_of("'C:\\x \"y\"'") == Values{"C:\\x \"y\""});
  CHECK(values_of(R"("a \"b\" \\ c")") == Values{"a \"b\" \\ c"});
  CHECK(values_of("\"\"") == Values{""});
  CHECK(values_of("") == Values{""});
  CHECK(values_of(" true\r") == Values{"true"});
}

TEST_CASE("A list of a config file stands in brackets on one line", "[config_text]") {
  CHECK(values_of("[12, 34]") == Values{"12", "34"});
  CHECK(values_of("[ \"a,]\" , 'b', c d ] # a comment") == Values{"a,]", "b", "c d"});
  CHECK(values_of("[]") == Values{});
  for (const char* list : {"[12", "[12\n34]", "['12' 34]", "[12] 34"}) {
    CHECK(problem_of("a = " + std::string(list)).starts_with("c.toml:1: 'a': "));
  }
}

TEST_CASE("Settings have their section and line", "[config_text]") {
  const auto settings = settings_of(
      "\xef\xbb\xbf"
      "a = 1\r\n; c\n\n# [x]\n  [record]  # c\n\tmax-retries=2\n[upload]\na = 3");
  REQUIRE(settings.size() == 3);
  CHECK(settings[0].name == "a");
  CHECK(settings[0].section.empty());
  CHECK(settings[0].line == 1);
  CHECK(settings[1].name == "max-retries");
  CHECK(settings[1].section == "record");
  CHECK(settings[1].line == 6);
  CHECK(settings[2].section == "upload");
  CHECK(settings[2].values == Values{"3"});
}

TEST_CASE("A name with two values in one section is refused, with both lines", "[config_text]") {
  CHECK(problem_of("a = 1\n\na = 2\n") == "c.toml:3: 'a' has a value already, in line 1");
  CHECK(problem_of("[r]\na = 1\n[u]\n[r]\na = 1\n") ==
        "c.toml:5: 'a' has a value already, in line 2");
}

TEST_CASE("What is no setting is refused with its line, and never quoted", "[config_text]") {
  const std::string key(32, 'a');
  const Values lines = {"https://" + key + "@x/1?a=b",
                        key,
                        "quiet",
                        "= " + key,
                        "[" + key,
                        "[[a]]",
                        "[a] b",
                        "dsn = \"" + key,
                        "dsn = \"" + key + "\" b",
                        "dsn = \"" + key + "\\x\"",
                        "dsn = " + key + '\0',
                        "dsn = " + key + "\x1b[2J",
                        std::string(65, 'n') + " = 1"};
  for (const std::string& line : lines) {
    const std::string problem = problem_of("\n" + line + "\n");
    CHECK(problem.starts_with("c.toml:2: "));
    CHECK(problem.find(key) == problem.npos);
  }
}

TEST_CASE("A config file of one long line or of many short ones is read at once", "[config_text]") {
  constexpr size_t kSize = 64 * 1024;
  CHECK(values_of(std::string(kSize, ',')).size() == 1);
  CHECK(values_of("[" + std::string(kSize, ',') + "]").size() == kSize);
  std::string text;
  for (size_t i = 0; i < kSize / 8; ++i) text += "n" + std::to_string(i) + "=\n";
  CHECK(settings_of(text).size() == kSize / 8);
}
