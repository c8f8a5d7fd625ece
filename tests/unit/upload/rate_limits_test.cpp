#include "upload/rate_limits.h"

#include "base/time_units.h"
#include "support/catch2.h"

#include <string>

using namespace sentry_prof::upload;
using sentry_prof::kNsPerSecond;

namespace {

constexpr uint64_t kNow = 1000 * kNsPerSecond;
constexpr int64_t kUnixNow = 784111777;  // Sun, 06 Nov 1994 08:49:37 GMT

HttpReply reply(int status, std::string rate_limits, std::string retry_after = "") {
  HttpReply result;
  result.status = status;
  result.rate_limits = std::move(rate_limits);
  result.retry_after = std::move(retry_after);
  return result;
}

// Seconds that each category has to wait, in the order of the enum.
struct Waits {
  uint64_t profile, chunk, chunk_ui, transaction;
  bool operator==(const Waits&) const = default;
};

Waits waits(const RateLimits& limits, uint64_t now_ns = kNow) {
  const auto seconds = [&](Category category) {
    return limits.remaining_ns(category, now_ns) / kNsPerSecond;
  };
  return {seconds(Category::Profile), seconds(Category::ProfileChunk),
          seconds(Category::ProfileChunkUi), seconds(Category::Transaction)};
}

Waits waits_after(const HttpReply& answer) {
  RateLimits limits;
  limits.update(answer, kNow, kUnixNow);
  return waits(limits);
}

constexpr Waits all(uint64_t seconds) { return {seconds, seconds, seconds, seconds}; }

}  // namespace

TEST_CASE("A limit holds for the categories it names", "[rate_limits]") {
  CHECK(waits_after(reply(429, "60:profile_chunk:organization")) == Waits{0, 60, 0, 0});
  CHECK(waits_after(reply(429, "60:profile;transaction:key:quota:custom")) == Waits{60, 0, 0, 60});
  CHECK(waits_after(reply(429, "7:profile_chunk_ui")) == Waits{0, 0, 7, 0});
  CHECK(waits_after(reply(429, "60::organization")) == all(60));
  CHECK(waits_after(reply(429, "60")) == all(60));
  CHECK(waits_after(reply(429, "60:error;session:project")) == all(0));
  CHECK(waits_after(reply(429, "60:error;profile_chunk:project")) == Waits{0, 60, 0, 0});
}

TEST_CASE("Several limits hold side by side, the latest of one category counts", "[rate_limits]") {
  CHECK(waits_after(reply(429, "60:profile_chunk:org, 2700:profile:org:x, 30:profile_chunk:key")) ==
        Waits{2700, 60, 0, 0});
  CHECK(waits_after(reply(429, " 10 : profile ; profile_chunk : org ,20::org")) == all(20));

  RateLimits limits;
  limits.update(reply(200, "100:profile_chunk:org"), kNow, kUnixNow);
  limits.update(reply(200, "10:profile_chunk:org"), kNow + 5 * kNsPerSecond, kUnixNow + 5);
  CHECK(waits(limits, kNow + 5 * kNsPerSecond) == Waits{0, 95, 0, 0});
  CHECK(waits(limits, kNow + 100 * kNsPerSecond) == all(0));
}

TEST_CASE("Limits count whatever the status", "[rate_limits]") {
  for (const int status : {200, 400, 413, 500, 503}) {
    CHECK(waits_after(reply(status, "60:profile:org")) == Waits{60, 0, 0, 0});
    CHECK(waits_after(reply(status, "", "17")) == all(17));
    CHECK(waits_after(reply(status, "")) == all(0));
  }
}

TEST_CASE("The header of limits wins over Retry-After", "[rate_limits]") {
  CHECK(waits_after(reply(429, "60:profile:org", "3000")) == Waits{60, 0, 0, 0});
  CHECK(waits_after(reply(429, "60:error:org", "3000")) == all(0));
  CHECK(waits_after(reply(429, "garbage", "30")) == all(30));
}

TEST_CASE("Retry-After is seconds or a date", "[rate_limits]") {
  CHECK(waits_after(reply(429, "", " 90 ")) == all(90));
  CHECK(waits_after(reply(503, "", "Sun, 06 Nov 1994 08:50:37 GMT")) == all(60));
  CHECK(waits_after(reply(429, "", "Sunday, 06-Nov-94 08:50:37 GMT")) == all(86400));  // 2094
  CHECK(waits_after(reply(429, "", "Sun Nov  6 08:50:07 1994")) == all(30));
  CHECK(waits_after(reply(429, "", "Sun, 06 Nov 1994 08:00:00 GMT")) == all(0));  // over already
}

TEST_CASE("A date is held against the server's own clock where it tells it", "[rate_limits]") {
  HttpReply answer = reply(429, "", "Mon, 05 Jan 2026 12:00:30 GMT");
  answer.date = "Mon, 05 Jan 2026 12:00:00 GMT";
  CHECK(waits_after(answer) == all(30));
  answer.date = "nonsense";
  CHECK(waits_after(answer) == all(86400));
}

TEST_CASE("429 without a readable limit holds for all for a minute", "[rate_limits]") {
  CHECK(waits_after(reply(429, "")) == all(60));
  for (const char* header : {"-5:profile:org", ":profile:org", "x:profile", "1e3::", ",,,",
                             "::::", "1.:profile", ".5:profile", "0x10::", "+5::"}) {
    INFO(header);
    CHECK(waits_after(reply(429, header)) == all(60));
    CHECK(waits_after(reply(200, header)) == all(0));
  }
  CHECK(waits_after(reply(429, "", "soon")) == all(60));
}

TEST_CASE("Fractions are rounded up, and no limit is longer than a day", "[rate_limits]") {
  CHECK(waits_after(reply(429, "0.5:profile:org")) == Waits{1, 0, 0, 0});
  CHECK(waits_after(reply(429, "2.000:profile:org")) == Waits{2, 0, 0, 0});
  CHECK(waits_after(reply(429, "0:profile:org")) == all(0));
  CHECK(waits_after(reply(429, "1" + std::string(30, '0') + "::org")) == all(86400));
  CHECK(waits_after(reply(429, "", "99999999999999999999999")) == all(86400));
}

TEST_CASE("No more than sixteen entries are read", "[rate_limits]") {
  std::string header;
  for (size_t i = 0; i < RateLimits::kMaxEntries; ++i) header += "5:profile:org,";
  CHECK(waits_after(reply(429, header + "60:transaction:org")) == Waits{5, 0, 0, 0});
}

TEST_CASE("Data of several categories waits for the longest limit", "[rate_limits]") {
  RateLimits limits;
  limits.update(reply(429, "10:profile:o, 20:transaction:o"), kNow, kUnixNow);
  CHECK(limits.remaining_ns(Category::Profile | Category::Transaction, kNow) == 20 * kNsPerSecond);
  CHECK(limits.remaining_ns({}, kNow) == 0);
}
