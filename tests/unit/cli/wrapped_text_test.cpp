#include "cli/wrapped_text.h"

#include "support/catch2.h"

namespace sentry_prof::cli {

TEST_CASE("Text is wrapped at column 100 and indented below its head") {
  const std::string word(40, 'w');
  CHECK(wrapped("head: ", word + " " + word + " " + word) ==
        "head: " + word + " " + word + "\n      " + word + "\n");
}

TEST_CASE("A line of exactly 100 columns is not broken") {
  CHECK(wrapped("", std::string(49, 'a') + " " + std::string(50, 'b')) ==
        std::string(49, 'a') + " " + std::string(50, 'b') + "\n");
  CHECK(wrapped("", std::string(50, 'a') + " " + std::string(50, 'b')) ==
        std::string(50, 'a') + "\n" + std::string(50, 'b') + "\n");
}

TEST_CASE("A word that is too long stays whole, and newlines break") {
  CHECK(wrapped("> ", std::string(120, 'a')) == "> " + std::string(120, 'a') + "\n");
  CHECK(wrapped("> ", "one\ntwo") == "> one\n  two\n");
  CHECK(wrapped("> ", "") == "> \n");
}

}  // namespace sentry_prof::cli
