#include "sampling/cpu_list.h"

#include "support/catch2.h"

using sentry_prof::sampling::parse_cpu_list;

TEST_CASE("lists of CPUs with numbers and ranges are read") {
  CHECK(*parse_cpu_list("0\n") == std::vector<int>{0});
  CHECK(*parse_cpu_list("0-3\n") == std::vector<int>{0, 1, 2, 3});
  CHECK(*parse_cpu_list("0-1,4,6-7") == std::vector<int>{0, 1, 4, 6, 7});
}

TEST_CASE("what is no list of CPUs is refused") {
  for (const char* text : {"", "\n", "a", "-1", "3-1", "0,", ",0", "0-", "1,0", "0-1,1", "0 1",
                           "0-4000000000", "8192"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_cpu_list(text).has_value());
  }
}
