#include "cli/dsn_source.h"

#include "cli/message.h"
#include "support/catch2.h"

namespace sentry_prof::cli {

TEST_CASE("The DSN of .sentryclirc may stand in quotes") {
  CHECK(dsn_in_sentryclirc("[auth]\ndsn = \"https://k@h/1\"\n") == "https://k@h/1");
  CHECK(dsn_in_sentryclirc("[auth]\ndsn='https://k@h/1'\n") == "https://k@h/1");
  CHECK(dsn_in_sentryclirc("[auth]\ndsn=\"\n") == "\"");
}

TEST_CASE("What stands before @ in a URL is not shown, but in our own example") {
  CHECK(without_userinfo("dsn https://0123@h/1") == "dsn https://***@h/1");
  CHECK(without_userinfo("https://KEY@HOST/PROJECT_ID") == "https://KEY@HOST/PROJECT_ID");
  CHECK(without_userinfo("https://KEY:0123@h/1") == "https://***@h/1");
}

}  // namespace sentry_prof::cli
