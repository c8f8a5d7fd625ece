#include "base/ids.h"

#include "support/catch2.h"

#include <set>

using namespace sentry_prof;

TEST_CASE("Uuid prints its bytes in order, with and without dashes") {
  Uuid uuid;
  for (uint8_t i = 0; i < 16; ++i) uuid.bytes[i] = static_cast<uint8_t>(i * 0x11);
  CHECK(uuid.to_hex() == "00112233445566778899aabbccddeeff");
  CHECK(uuid.to_hyphenated() == "00112233-4455-6677-8899-aabbccddeeff");
}

TEST_CASE("random_uuid_v4 sets version and variant and does not repeat") {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = random_uuid_v4().to_hex();
    REQUIRE(text.size() == 32);
    REQUIRE(text[12] == '4');
    REQUIRE(std::string("89ab").find(text[16]) != std::string::npos);
    seen.insert(text);
  }
  CHECK(seen.size() == 1000);
}
