#include "upload/http_date.h"

#include "support/catch2.h"

using sentry_prof::upload::parse_http_date;

TEST_CASE("All three forms of an HTTP date are read", "[http_date]") {
  CHECK(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT") == 784111777);
  CHECK(parse_http_date("Sun Nov  6 08:49:37 1994") == 784111777);
  CHECK(parse_http_date("Sun Nov 16 08:49:37 1994") == 784111777 + 10 * 86400);
  CHECK(parse_http_date("Friday, 01-Jan-27 00:00:00 GMT") == 1798761600);
  CHECK(parse_http_date("Thu, 29 Feb 2024 23:59:60 GMT") == 1709251200);
}

TEST_CASE("What is no HTTP date is none", "[http_date]") {
  for (const char* text : {"",
                           " ",
                           ",",
                           ", ",
                           "60",
                           "Sun, ",
                           "Sun, 6 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49:37",
                           "Sun, 06 Nov 1994 08:49:37 GMTx",
                           "Sun, 06 Nov 1994 08:49:37 UTC",
                           "Sun, 31 Feb 2026 08:49:37 GMT",
                           "Sun, 00 Nov 1994 08:49:37 GMT",
                           "Sun, 06 nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 24:00:00 GMT",
                           "Sun, 06 Nov 1994 08:60:00 GMT",
                           "Sun, 06 Nov 1994 08:59:61 GMT",
                           "Sun Nov 6 08:49:37 1994",
                           "Sun Nov  6 08:49:37 94",
                           "Sun, -6 Nov 1994 08:49:37 GMT",
                           "2026-01-01T00:00:00Z",
                           "A day with a long name, 06 Nov 1994 08:49:37 GMT"}) {
    INFO(text);
    CHECK_FALSE(parse_http_date(text));
  }
}
