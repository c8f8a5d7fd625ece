#include "cli/sendable.h"

#include "sentry_prof/sentry.h"
#include "support/catch2.h"
#include "unit/sentry/test_profile.h"

namespace sentry_prof::cli {

TEST_CASE("A transaction for a V1 profile is not passed over for a chunk") {
  const std::string chunk = to_sentry_json(testing::test_profile(), SentryFormat::V2);
  CHECK(make_sendable(chunk, {}));
  const auto refused = make_sendable(chunk, {false, "{}"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::InvalidArgument);
  CHECK_FALSE(make_sendable("{}\n{\"type\":\"event\"}\n{}\n", {false, "{}"}));
}

}  // namespace sentry_prof::cli
