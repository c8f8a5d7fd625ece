#include "sampling/cpu_list.h"

#include "support/catch2.h"

using sentry_prof::sampling::count_unknown_cpus;
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

TEST_CASE("CPUs that came online later are counted, and those that went are not") {
  const std::vector<int> at_begin = {0, 1, 4};
  CHECK(count_unknown_cpus(at_begin, at_begin) == 0);
  CHECK(count_unknown_cpus(std::vector{0, 2, 4, 5}, at_begin) == 2);
  CHECK(count_unknown_cpus({}, at_begin) == 0);
}
