#include "os/time_namespace.h"

#include "support/catch2.h"

using sentry_prof::os::monotonic_offset_ns;

TEST_CASE("a time namespace's offset is that of its monotonic clock") {
  CHECK(monotonic_offset_ns("monotonic           0         0\nboottime            5         0\n") ==
        0);
  CHECK(monotonic_offset_ns("monotonic        1000 500000000\nboottime            5         0\n") ==
        1'000'500'000'000);
  CHECK(monotonic_offset_ns("monotonic       -1000         7\n") == -999'999'999'993);
}

TEST_CASE("what is no such offset is none") {
  CHECK(monotonic_offset_ns("") == 0);
  CHECK(monotonic_offset_ns("boottime 5 0\n") == 0);
  CHECK(monotonic_offset_ns("monotonic \n") == 0);
  CHECK(monotonic_offset_ns("monotonic x 0\n") == 0);
  CHECK(monotonic_offset_ns("monotonic 9223372036854775807 0\n") == 0);
  CHECK(monotonic_offset_ns("monotonic 99999999999999999999 0\n") == 0);
  CHECK(monotonic_offset_ns("monotonic 1 -1\n") == 0);
}
