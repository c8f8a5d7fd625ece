#include "sentry/dsn.h"

#include "support/catch2.h"

#include <string>
#include <vector>

using sentry_prof::ErrorCode;
using sentry_prof::sentry::Dsn;

namespace {

const std::string kKey = "0123456789abcdef0123456789ABCDEF";

Dsn parsed(const std::string& text) {
  auto dsn = Dsn::parse(text);
  INFO(text);
  REQUIRE(dsn);
  return *dsn;
}

}  // namespace

TEST_CASE("A DSN names the URL of envelopes, without the key", "[dsn]") {
  struct Case {
    const char* dsn;
    const char* url;
  };
  const Case cases[] = {
      {"https://k@o1.ingest.sentry.io/42", "https://o1.ingest.sentry.io/api/42/envelope/"},
      {"http://k@127.0.0.1:9000/1", "http://127.0.0.1:9000/api/1/envelope/"},
      {"https://k:legacy@sentry.example/7", "https://sentry.example/api/7/envelope/"},
      {"https://k@sentry.example/deep/er/7", "https://sentry.example/deep/er/api/7/envelope/"},
      {"https://k@sentry.example/7/", "https://sentry.example/api/7/envelope/"},
      {"HTTPS://k@Sentry.Example:443/7", "https://sentry.example:443/api/7/envelope/"},
      {"http://k@[::1]:8000/3", "http://[::1]:8000/api/3/envelope/"},
      {"http://k@[2001:DB8::1]/3", "http://[2001:db8::1]/api/3/envelope/"},
      {"http://k@relay_1/18446744073709551615",
       "http://relay_1/api/18446744073709551615/envelope/"},
  };
  for (const Case& c : cases) CHECK(parsed(c.dsn).envelope_url() == c.url);
  CHECK(parsed(cases[0].dsn).is_encrypted());
  CHECK_FALSE(parsed(cases[1].dsn).is_encrypted());
}

TEST_CASE("Key and legacy secret stand in the header of authentication", "[dsn]") {
  CHECK(parsed("https://pub@h/1").auth_header("sentry-prof/1.0") ==
        "Sentry sentry_version=7, sentry_key=pub, sentry_client=sentry-prof/1.0");
  CHECK(parsed("https://pub:sec@h/1").auth_header("c/1") ==
        "Sentry sentry_version=7, sentry_key=pub, sentry_client=c/1, sentry_secret=sec");
}

TEST_CASE("What is shown of a DSN has no key", "[dsn]") {
  CHECK(parsed("https://" + kKey + ":secret99@h:8443/p/1").masked() == "https://***@h:8443/p/1");
}

TEST_CASE("The key is masked where somebody else quotes it", "[dsn]") {
  const Dsn dsn = parsed("https://" + kKey + ":secret99@h/1");
  CHECK(dsn.without_secrets("no project for " + kKey + "!") == "no project for ***!");
  CHECK(dsn.without_secrets("0123456789ABCDEF0123456789abcdef, SECRET99, secret99") ==
        "***, ***, ***");
  CHECK(dsn.without_secrets("nothing here") == "nothing here");
  // The secret holds the key: no part of it may stay.
  CHECK(parsed("https://abcd:xabcdx@h/1").without_secrets("xabcdx abcd") == "*** ***");
}

TEST_CASE("What is no DSN is refused, and no part of it is quoted", "[dsn]") {
  const std::vector<std::string> wrong = {
      "",
      "KEYKEY",
      "https://",
      "https:///",
      "ftp://KEYKEY@h/1",
      "file:///KEYKEY@h/1",
      "//KEYKEY@h/1",
      "https:/KEYKEY@h/1",
      "https://h/1",
      "https://@h/1",
      "https://:KEYKEY@h/1",
      "https://KEYKEY:@h/1",
      "https://KEYKEY:a:b@h/1",
      "https://KEYKEY@evil@h/1",
      "https://KEYKEY,x@h/1",
      "https://KEY%4bEY@h/1",
      "https://KEYKEY@/1",
      "https://KEYKEY@h",
      "https://KEYKEY@h/",
      "https://KEYKEY@h//",
      "https://KEYKEY@h/1//",
      "https://KEYKEY@h/project",
      "https://KEYKEY@h/-1",
      "https://KEYKEY@h/184467440737095516150",
      "https://KEYKEY@h/1?x=1",
      "https://KEYKEY@h/1#x",
      "https://KEYKEY@h:/1",
      "https://KEYKEY@h:0/1",
      "https://KEYKEY@h:65536/1",
      "https://KEYKEY@h:8a/1",
      "https://KEYKEY@h:-1/1",
      "https://KEYKEY@::1/1",
      "https://KEYKEY@[::1/1",
      "https://KEYKEY@[]/1",
      "https://KEYKEY@[::1..c]/1",
      "https://KEYKEY@[::1%25eth0]/1",
      "https://KEYKEY@[::1]x/1",
      "https://KEYKEY@[::1]80/1",
      "https://KEYKEY@h\\evil/1",
      "https://KEYKEY@-h/1",
      "https://KEYKEY@.h/1",
      "https://KEYKEY@h..x/1",
      "https://KEYKEY@h/../1",
      "https://KEYKEY@h/./1",
      "https://KEYKEY@h//1",
      "https://KEYKEY@h/%2e/1",
      "https://KEYKEY@h/1\n",
      " https://KEYKEY@h/1",
      "https://KEY\r\nX-Evil: 1@h/1",
      "https://KEYKEY@h\xc3\xa4user.example/1",
      std::string("https://KEYKEY@h/1\0", 19),
      "https://KEYKEY@" + std::string(254, 'h') + "/1",
      "https://KEYKEY@h/" + std::string(3000, 'p') + "/1",
  };
  for (const std::string& text : wrong) {
    const auto dsn = Dsn::parse(text);
    INFO(text);
    REQUIRE_FALSE(dsn);
    CHECK(dsn.error().code == ErrorCode::InvalidArgument);
    CHECK(dsn.error().message.find("KEYKEY") == std::string::npos);
    CHECK(dsn.error().message.find("evil") == std::string::npos);
  }
}
