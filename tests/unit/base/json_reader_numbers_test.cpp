// Numbers, as they stand and as values.
#include "base/json_words.h"
#include "json_reader_cases.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

std::string number_of(std::string_view json) {
  JsonReader reader(json);
  REQUIRE(reader.peek() == JsonKind::Number);
  const std::string text(reader.number());
  return reader.failed() ? "failed" : text;
}

std::optional<uint64_t> tried_unsigned(std::string_view json) {
  JsonReader reader(json);
  uint64_t value = 0;
  const bool is_read = reader.try_unsigned(value);
  CHECK(reader.offset() == (is_read           ? json.find_last_not_of(" ,]") + 1
                            : reader.failed() ? json.size()
                                              : 0));
  return is_read ? std::optional(value) : std::nullopt;
}

std::optional<double> tried_double(std::string_view json) {
  JsonReader reader(json);
  double value = 0;
  return reader.try_double(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

TEST_CASE("Numbers are read as they stand") {
  for (const char* text : {"0", "-0", "7", "10", "-12", "0.5", "1.25", "0e0", "1e400", "-1E+05",
                           "2e-9", "0.000", "1.0e00"}) {
    CHECK(number_of(text) == text);
    CHECK(accepts(text));
  }
}

TEST_CASE("What RFC 8259 does not call a number is a fault") {
  CHECK(fails_at("01", 0, "must not begin with 0"));
  CHECK(fails_at("-01", 1, "must not begin with 0"));
  CHECK(fails_at("00.5", 0, "must not begin with 0"));
  CHECK(fails_at("-", 1, "expected a digit"));
  CHECK(fails_at("--1", 1, "expected a digit"));
  CHECK(fails_at("1.", 2, "expected a digit"));
  CHECK(fails_at("1.e5", 2, "expected a digit"));
  CHECK(fails_at("1e", 2, "expected a digit"));
  CHECK(fails_at("1e+", 3, "expected a digit"));
  CHECK(fails_at("1e1.5,", 3, "") ==
        false);  // the number ends in front of it; who reads on meets it
  CHECK(fails_at("[1e1.5]", 4, "expected ',' or ']'"));
  CHECK(fails_at("[0x10]", 2, "expected ',' or ']'"));
  CHECK(fails_at("[1_000]", 2, "expected ',' or ']'"));
}

TEST_CASE("A number of 10,000 digits is read in whole") {
  const std::string digits(10'000, '7');
  CHECK(accepts(digits));
  CHECK(json_unsigned(digits) == std::nullopt);
  CHECK(json_double(digits) == std::nullopt);
  CHECK(tried_unsigned(digits) == std::nullopt);
  CHECK(tried_double(digits) == std::nullopt);
  CHECK(json_double("0." + digits) == 7.0 / 9.0);
  CHECK(json_double("0." + std::string(10'000, '0') + "1") == 0.0);
  CHECK(json_double("1e-" + digits) == 0.0);
  CHECK(json_double("1e" + digits) == std::nullopt);
}

TEST_CASE("An unsigned number has no sign, fraction or exponent and fits in 64 bits") {
  for (const auto function :
       {+[](std::string_view text) { return json_unsigned(text); }, &tried_unsigned}) {
    CHECK(function("0") == 0U);
    CHECK(function("7") == 7U);
    CHECK(function("1234567") == 1234567U);
    CHECK(function("12345678") == 12345678U);
    CHECK(function("18446744073709551615") == std::numeric_limits<uint64_t>::max());
    CHECK(function("18446744073709551616") == std::nullopt);
    CHECK(function("-0") == std::nullopt);
    CHECK(function("-1") == std::nullopt);
    CHECK(function("1.0") == std::nullopt);
    CHECK(function("1e2") == std::nullopt);
    CHECK(function("1E2") == std::nullopt);
  }
}

TEST_CASE("try_unsigned agrees with number() whatever stands behind and wherever the text ends") {
  std::string digits;
  for (int length = 1; length <= 22; ++length) {
    digits += static_cast<char>('0' + length % 10);
    for (const std::string behind : {"", ",", "]", "     ,", ",          ]", " ]]]]]]]]]"}) {
      CAPTURE(digits + behind);
      CHECK(tried_unsigned(digits + behind) == json_unsigned(digits));
    }
    for (const std::string behind : {".5", "e1", "E1", ".5          ", "e1          "}) {
      CAPTURE(digits + behind);
      CHECK(tried_unsigned(digits + behind) == std::nullopt);
    }
  }
}

TEST_CASE("try_unsigned refuses leading zeros with the fault of number()") {
  for (const std::string text : {"01", "00", "0123456789", "01          "}) {
    JsonReader reader(text);
    uint64_t value = 0;
    CHECK(!reader.try_unsigned(value));
    CHECK(reader.failed());
    CHECK(reader.fault()->offset == 0);
  }
}

TEST_CASE("A double is the nearest one") {
  for (const auto function :
       {+[](std::string_view text) { return json_double(text); }, &tried_double}) {
    CHECK(function("1768478400.000075") == 1768478400.000075);
    CHECK(function("9007199254740993") == 9007199254740992.0);
    CHECK(function("9007199254740993.00000000000000000000001") == 9007199254740994.0);
    CHECK(function("0.1") == 0.1);
    CHECK(function("1.7976931348623157e308") == std::numeric_limits<double>::max());
    CHECK(function("4.9e-324") == std::numeric_limits<double>::denorm_min());
    CHECK(function("123456789012345678901234567890") == 123456789012345678901234567890.0);
    CHECK(std::signbit(function("-0").value()));
    CHECK(std::signbit(function("-0.0").value()));
    CHECK(function("-2.5E+1") == -25.0);
  }
}

TEST_CASE("What is too small for a double is 0, what is too large is nothing") {
  for (const auto function :
       {+[](std::string_view text) { return json_double(text); }, &tried_double}) {
    CHECK(function("1e-400") == 0.0);
    CHECK(function("0e999999999999999999999") == 0.0);
    CHECK(function("0.0000e+99999999999999999999") == 0.0);
    CHECK(function("1e400") == std::nullopt);
    CHECK(function("-1e400") == std::nullopt);
    CHECK(function("1e99999999999999999999") == std::nullopt);
    CHECK(function("1e-99999999999999999999") == 0.0);
    CHECK(function(std::string("2").append(308, '0')) == std::nullopt);
    CHECK(function(std::string("0.").append(400, '0') + "1e800") == std::nullopt);
    CHECK(function(std::string("0.").append(400, '0') + "1e+50") == 0.0);
    CHECK(function(std::string("1").append(400, '0') + "e-50") == std::nullopt);
    CHECK(function(std::string("1").append(400, '0') + "e-800") == 0.0);
    CHECK(function(std::string("1").append(400, '0') + "e-400") == 1.0);
  }
}

TEST_CASE("try_double agrees with number() at each length of both sides of the point") {
  const std::string digits = "90071992547409939007199254740993";
  for (size_t whole = 1; whole <= 20; ++whole) {
    for (size_t fraction = 1; fraction <= 12; ++fraction) {
      const std::string number =
          digits.substr(0, whole) + '.' + digits.substr(20 - whole, fraction);
      CAPTURE(number);
      for (const std::string behind :
           {"", ",", ",          ", "]         ", "e3         ", "E-2       "}) {
        const std::string text = number + behind.substr(0, behind.find_first_of(" ,]"));
        CHECK(tried_double(number + behind) == json_double(text));
      }
    }
  }
}

TEST_CASE("try_double has the faults of number()") {
  for (const std::string text : {"01.5", "1.", "1.e3", "1.5e", "00"}) {
    for (const std::string behind : {"", "            "}) {
      const std::string whole = text + behind;
      JsonReader reader(whole);
      JsonReader other = reader;
      double value = 0;
      CHECK(!reader.try_double(value));
      other.peek();
      other.number();
      REQUIRE(other.failed());
      REQUIRE(reader.failed());
      CHECK(reader.fault()->offset == other.fault()->offset);
    }
  }
}

TEST_CASE("A number out of range is no fault: it stands where it stood") {
  JsonReader reader(" 1e400 ");
  double value = 0;
  CHECK(!reader.try_double(value));
  CHECK(!reader.failed());
  CHECK(reader.peek() == JsonKind::Number);
  CHECK(reader.number() == "1e400");
}

TEST_CASE("Digits are counted and read up to eight at a time") {
  for (int byte = 0; byte < 256; ++byte) {
    const bool digit = byte >= '0' && byte <= '9';
    for (unsigned at = 0; at < 8; ++at) {
      std::string text = std::string(at, '9') + static_cast<char>(byte) + "00000000";
      CAPTURE(byte, at);
      CHECK(json_words::digits_of_8(json_words::load_8(text.data())) == (digit ? 8 : at));
    }
  }
  const uint64_t word = json_words::load_8("90817263");
  const std::vector<uint64_t> values = {9, 90, 908, 9081, 90817, 908172, 9081726, 90817263};
  for (unsigned count = 1; count <= 8; ++count)
    CHECK(json_words::value_of_digits(word, count) == values[count - 1]);
}
