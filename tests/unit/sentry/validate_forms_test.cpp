// The spellings of single values.
#include "sentry/rfc3339.h"
#include "sentry/scalar_forms.h"
#include "support/catch2.h"

#include <cstdint>
#include <string>

namespace sentry_prof::sentry {
namespace {

TEST_CASE("UUIDs are taken in the spellings of the uuid crate") {
  const std::string dashed = "41fed092-5670-468b-b045-7f61a74688ec";
  for (const std::string& text : {dashed, std::string("41FED0925670468bb0457f61a74688ec"),
                                  "{" + dashed + "}", "urn:uuid:" + dashed}) {
    INFO(text);
    REQUIRE(parse_uuid(text));
    CHECK(parse_uuid(text)->to_hyphenated() == dashed);
  }
  for (const std::string& text :
       {std::string(), std::string(32, 'g'), "(" + dashed + ")", "{" + dashed, "URN:UUID:" + dashed,
        std::string("urn:uuid:41fed0925670468bb0457f61a74688ec"), dashed + "0",
        std::string("41fed0925-670-468b-b045-7f61a74688ec")}) {
    INFO(text);
    CHECK_FALSE(parse_uuid(text));
  }
}

TEST_CASE("A plain id is 32 lower-case hex digits; a random one has version 4") {
  CHECK(is_plain_id("41fed0925670468bb0457f61a74688ec"));
  CHECK_FALSE(is_plain_id("41Fed0925670468bb0457f61a74688ec"));
  CHECK(is_random_uuid(*parse_uuid("41fed0925670468bb0457f61a74688ec")));
  CHECK_FALSE(is_random_uuid(*parse_uuid("41fed0925670568bb0457f61a74688ec")));
  CHECK_FALSE(is_random_uuid(*parse_uuid("41fed0925670468bc0457f61a74688ec")));
}

TEST_CASE("Unsigned numbers in strings are Rust's") {
  CHECK(parse_unsigned_text("18446744073709551615") == UINT64_MAX);
  CHECK(parse_unsigned_text("+007") == 7);
  for (const char* const text :
       {"", "+", "-0", "1.0", "1e3", " 1", "1 ", "0x1", "++1", "18446744073709551616"}) {
    INFO(text);
    CHECK_FALSE(parse_unsigned_text(text));
  }
}

TEST_CASE("Floats in strings are Rust's") {
  for (const char* const text :
       {"1", "-1.5", "+2", ".5", "5.", "1e3", "1E-3", "inf", "-Infinity", "NaN"}) {
    INFO(text);
    CHECK(is_float_text(text));
  }
  for (const char* const text : {"", ".", "-", "1e", "1e+", "e1", "0x1", " 1", "infinit", "1,5"}) {
    INFO(text);
    CHECK_FALSE(is_float_text(text));
  }
}

TEST_CASE("Addresses are hex behind 0x, decimal without it") {
  CHECK(parse_address("0xFf") == 255);
  CHECK(parse_address("0Xffffffffffffffff") == UINT64_MAX);
  CHECK(parse_address("10") == 10);
  for (const char* const text :
       {"", "0x", "ff", "0x10000000000000000", "-1", "0x-1", "0xg", " 0x1"}) {
    INFO(text);
    CHECK_FALSE(parse_address(text));
  }
}

TEST_CASE("Debug ids are UUIDs with an age or without") {
  const std::string dashed = "e20a2268-5dc6-c165-b6aa-a12fa6765a6e";
  const std::string plain = "e20a22685dc6c165b6aaa12fa6765a6e";
  CHECK(parse_debug_id(dashed)->has_dashes);
  CHECK_FALSE(parse_debug_id(dashed)->has_age);
  CHECK(parse_debug_id(dashed + "-1f")->has_age);
  CHECK(parse_debug_id(plain + "1")->has_age);
  CHECK(parse_debug_id(plain)->uuid == parse_debug_id(dashed)->uuid);
  for (const std::string& text :
       {std::string(), std::string("68220ae2"), dashed + "-", dashed + "1", plain + "-1",
        plain + "c2f5f434", dashed + "-123456789", dashed + "-g"}) {
    INFO(text);
    CHECK_FALSE(parse_debug_id(text));
  }
}

TEST_CASE("Times are RFC 3339 with an offset") {
  for (const char* const text :
       {"2026-01-15T12:00:00Z", "2026-01-15t12:00:00.1z", "2026-01-15 12:00:00.123456789+02:00",
        "2024-02-29T23:59:60-23:59", "2000-02-29T00:00:00Z"}) {
    INFO(text);
    CHECK(read_rfc3339(text));
  }
  for (const char* const text :
       {"", "2026-01-15", "2026-01-15T12:00:00", "2026-13-15T12:00:00Z", "2026-02-30T12:00:00Z",
        "1900-02-29T12:00:00Z", "2026-01-15T24:00:00Z", "2026-01-15T12:60:00Z",
        "2026-01-15T12:00:61Z", "2026-01-15T12:00:00.Z", "2026-01-15T12:00:00+2:00",
        "2026-01-15T12:00:00+24:00", "2026-01-15T12:00:00Zx", "2026/01/15T12:00:00Z"}) {
    INFO(text);
    CHECK_FALSE(read_rfc3339(text));
  }
}

}  // namespace
}  // namespace sentry_prof::sentry
