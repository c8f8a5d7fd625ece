#include "base/json_reader.h"

#include "support/catch2.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace sentry_prof;

namespace {

// What stands behind the document's one value, or the fault.
struct Outcome {
  bool failed = false;
  size_t offset = 0;
  std::string what;
};

Outcome skip_all(std::string_view text) {
  JsonReader reader(text);
  reader.skip_value();
  if (reader.failed()) return {true, reader.fault()->offset, reader.fault()->what};
  return {false, reader.offset(), ""};
}

bool fails_at(std::string_view text, size_t offset, std::string_view part_of_message) {
  const Outcome outcome = skip_all(text);
  INFO(text);
  INFO(outcome.what);
  CHECK(outcome.offset == offset);
  return outcome.failed && outcome.what.find(part_of_message) != std::string::npos;
}

bool accepts(std::string_view text) {
  const Outcome outcome = skip_all(text);
  INFO(text);
  INFO(outcome.what);
  return !outcome.failed && outcome.offset == text.size();
}

std::string nested(size_t depth, std::string_view open, std::string_view inner,
                   std::string_view close) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += open;
  text += inner;
  for (size_t i = 0; i < depth; ++i) text += close;
  return text;
}

std::string in_quotes(std::string_view text, std::string_view behind = "") {
  return std::string(1, '"').append(text).append(1, '"').append(behind);
}

std::string decoded(std::string_view json) {
  JsonReader reader(json);
  REQUIRE(reader.peek() == JsonKind::String);
  std::string buffer;
  const std::string text(reader.string().text(buffer));
  CHECK(!reader.failed());
  return text;
}

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

TEST_CASE("peek tells the kind of a value behind any white space") {
  const std::vector<std::pair<std::string, JsonKind>> cases = {
      {" {", JsonKind::Object}, {"\t[", JsonKind::Array},   {"\r\n\"", JsonKind::String},
      {"-", JsonKind::Number},  {"0", JsonKind::Number},    {"9", JsonKind::Number},
      {"true", JsonKind::True}, {"false", JsonKind::False}, {"null", JsonKind::Null}};
  for (const auto& [text, kind] : cases) {
    JsonReader reader(text);
    CHECK(reader.peek() == kind);
  }
}

TEST_CASE("What begins no value is a fault where it stands") {
  for (const char* text :
       {"  +1", "  .5", "  NaN", "  Infinity", "  'a'", "  ]", "  }", "  ,", "  :", "  \xc3\xa4"}) {
    CHECK(fails_at(text, 2, "begins no JSON value"));
  }
  CHECK(fails_at(std::string_view("\0", 1), 0, "begins no JSON value"));
}

TEST_CASE("No text is a fault at its end") {
  CHECK(fails_at("", 0, "ends where a value"));
  CHECK(fails_at(" \n ", 3, "ends where a value"));
}

TEST_CASE("A BOM is refused") { CHECK(fails_at("\xef\xbb\xbf{}", 0, "begins no JSON value")); }

TEST_CASE("Only the four white space characters of JSON are skipped") {
  CHECK(accepts(" \t\r\n[ \t\r\n1 \t\r\n, \t\r\n2 \t\r\n]"));
  CHECK(fails_at("\v1", 0, "begins no JSON value"));
  CHECK(fails_at("[1\f]", 2, "expected ',' or ']'"));
  CHECK(fails_at("[1\xc2\xa0]", 2, "expected ',' or ']'"));
}

TEST_CASE("What stands behind the value is left to the caller") {
  JsonReader reader("{\"a\":[1]} x");
  reader.skip_value();
  CHECK(!reader.failed());
  CHECK(reader.offset() == 9);
  CHECK(reader.peek() == JsonKind::Malformed);
  CHECK(reader.fault()->offset == 10);
}

TEST_CASE("127 containers inside one another are read, 128 are not") {
  for (const auto& [open, inner, close] :
       std::vector<std::tuple<const char*, const char*, const char*>>{{"[", "", "]"},
                                                                      {"{\"a\":", "1", "}"}}) {
    CHECK(accepts(nested(127, open, inner, close)));
    CHECK(fails_at(nested(128, open, inner, close), 127 * std::string_view(open).size(),
                   "nested too deep"));
  }
}

TEST_CASE("The depth falls when a container closes") {
  std::string text = "[";
  for (int i = 0; i < 300; ++i) text += nested(126, "[", "", "]") + ",";
  CHECK(accepts(text + "0]"));
}

TEST_CASE("A million brackets need no stack of the machine") {
  CHECK(fails_at(std::string(1'000'000, '['), 127, "nested too deep"));
  CHECK(fails_at(nested(1'000'000, "{\"a\":", "1", "}"), 127 * 5, "nested too deep"));
}

TEST_CASE("The depth counts together what the caller opened and what is skipped") {
  const std::string text = nested(128, "[", "", "]");
  JsonReader reader(text);
  REQUIRE(reader.peek() == JsonKind::Array);
  reader.begin_array();
  REQUIRE(reader.next_element());
  reader.skip_value();
  REQUIRE(reader.failed());
  CHECK(reader.fault()->offset == 127);
}

TEST_CASE("Members come in their order, a key that comes twice comes twice") {
  JsonReader reader(R"({"a":1,"b":{},"a":"x"} )");
  std::vector<std::string> keys;
  JsonString key;
  REQUIRE(reader.peek() == JsonKind::Object);
  reader.begin_object();
  while (reader.next_member(key)) {
    keys.emplace_back(key.raw);
    reader.skip_value();
  }
  CHECK(!reader.failed());
  CHECK(keys == std::vector<std::string>{"a", "b", "a"});
  CHECK(reader.offset() == 22);
}

TEST_CASE("Objects and arrays may be empty") {
  CHECK(accepts("{}"));
  CHECK(accepts("[ ]"));
  CHECK(accepts("[[],{},{ }]"));
}

TEST_CASE("A fault in the grammar has the offset where the text first cannot go on") {
  CHECK(fails_at("{\"a\" 1}", 5, "expected ':'"));
  CHECK(fails_at("{\"a\":1 \"b\":2}", 7, "expected ',' or '}'"));
  CHECK(fails_at("{\"a\":1,}", 7, "expected a key"));
  CHECK(fails_at("{a:1}", 1, "expected a key"));
  CHECK(fails_at("{,}", 1, "expected a key"));
  CHECK(fails_at("{\"a\":}", 5, "begins no JSON value"));
  CHECK(fails_at("[1 2]", 3, "expected ',' or ']'"));
  CHECK(fails_at("[1,]", 3, "expected a value behind ','"));
  CHECK(fails_at("[,1]", 1, "begins no JSON value"));
  CHECK(fails_at("[1}", 2, "expected ',' or ']'"));
  CHECK(fails_at("{\"a\":1]", 6, "expected ',' or '}'"));
  CHECK(fails_at("[1,/**/2]", 3, "begins no JSON value"));
}

TEST_CASE("A document cut off anywhere is a fault and nothing behind it is read") {
  const std::string text = R"({"a":[1,-2.5e3,true,null,"x\u00e4\n"],"b":{"c":false}})";
  REQUIRE(accepts(text));
  for (size_t length = 0; length < text.size(); ++length) {
    // In a place of its own, so that a sanitizer sees a read behind the end.
    const std::vector<char> cut(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
    const Outcome outcome = skip_all({cut.data(), cut.size()});
    CAPTURE(length);
    CHECK(outcome.failed);
    CHECK(outcome.offset <= length);
  }
}

TEST_CASE("After a fault every call does nothing and the first fault stays") {
  JsonReader reader("[1 x");
  REQUIRE(reader.peek() == JsonKind::Array);
  reader.begin_array();
  REQUIRE(reader.next_element());
  CHECK(reader.number() == "1");
  CHECK(!reader.next_element());
  REQUIRE(reader.failed());
  JsonString text;
  uint64_t whole = 7;
  double real = 7;
  CHECK(reader.peek() == JsonKind::Malformed);
  reader.begin_object();
  reader.begin_array();
  reader.literal();
  reader.skip_value();
  CHECK(!reader.next_member(text));
  CHECK(!reader.next_member_is("a"));
  CHECK(!reader.try_unsigned(whole));
  CHECK(!reader.try_double(real));
  CHECK(!reader.try_string(text));
  CHECK(reader.string().raw.empty());
  CHECK(reader.number().empty());
  CHECK(whole == 7);
  CHECK(reader.fault()->offset == 3);
}

TEST_CASE("Literals are spelled in full and in lower case") {
  CHECK(accepts("[true,false,null]"));
  CHECK(fails_at("[tru]", 1, "expected true, false or null"));
  CHECK(fails_at("nul", 0, "expected true, false or null"));
  CHECK(fails_at("fALSE", 0, "expected true, false or null"));
  CHECK(fails_at("[nullx]", 5, "expected ',' or ']'"));
}

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

TEST_CASE("Strings are what stands between the quotes") {
  JsonReader reader(R"(["","a","a\"b\\"])");
  std::vector<std::pair<std::string, bool>> strings;
  REQUIRE(reader.peek() == JsonKind::Array);
  reader.begin_array();
  while (reader.next_element()) {
    const JsonString string = reader.string();
    strings.emplace_back(string.raw, string.has_escapes);
  }
  CHECK(!reader.failed());
  CHECK(strings ==
        std::vector<std::pair<std::string, bool>>{{"", false}, {"a", false}, {R"(a\"b\\)", true}});
}

TEST_CASE("Escapes say the character they stand for") {
  CHECK(decoded(R"("\"\\\/\b\f\n\r\t")") == "\"\\/\b\f\n\r\t");
  CHECK(decoded(R"("\u0000")") == std::string(1, '\0'));
  CHECK(decoded(R"("\u007f\u0080\u07FF\u0800\uffff")") ==
        "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf");
  CHECK(decoded(R"("\ud7ff\uE000")") == "\xed\x9f\xbf\xee\x80\x80");
  CHECK(decoded(R"("\ud800\udc00\uDBFF\uDFFF")") == "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
  CHECK(decoded("\"x\\u0041y\\u005c\\u005cz\"") == "xAy\\\\z");
  CHECK(decoded(R"("\\u0041")") == "\\u0041");
}

TEST_CASE("A string compares by what it says") {
  const auto is = [](std::string_view json, std::string_view plain) {
    JsonReader reader(json);
    reader.peek();
    return reader.string().is(plain);
  };
  CHECK(is(R"("frames")", "frames"));
  CHECK(is(R"("fr\u0061mes")", "frames"));
  CHECK(is(R"("\u0061")", "a"));
  CHECK(is(R"("\u0061\u0061")", "aa"));
  CHECK(!is(R"("\u0061\u0061")", "a"));
  CHECK(!is(R"("frames")", "frame"));
  CHECK(!is(R"("\n")", "n"));
  CHECK(is(R"("")", ""));
}

TEST_CASE("Escapes that JSON does not have are faults at their backslash or digits") {
  CHECK(fails_at(R"("ab\x41")", 3, "no such escape"));
  CHECK(fails_at(R"("\U0041")", 1, "no such escape"));
  CHECK(fails_at("\"\\\n\"", 1, "no such escape"));
  CHECK(fails_at(std::string("\"\\\0\"", 4), 1, "no such escape"));
  CHECK(fails_at("\"\\", 1, "no such escape"));
  CHECK(fails_at(R"("\u12")", 3, "four hex digits"));
  CHECK(fails_at(R"("\u12g4")", 3, "four hex digits"));
  CHECK(fails_at(R"("\u+123")", 3, "four hex digits"));
  CHECK(fails_at(R"("\u-123")", 3, "four hex digits"));
  CHECK(fails_at(R"("\u0x12")", 3, "four hex digits"));
}

TEST_CASE("Half a surrogate pair is refused") {
  for (const char* text :
       {R"("a\ud800")", R"("a\udc00")", R"("a\udfff\ud800")", R"("a\ud800\ud800")",
        R"("a\ud800\u0041")", R"("a\udbff\n")", R"("a\ud800x")", R"("a\ud800\ue000")"}) {
    CHECK(fails_at(text, 2, "surrogate"));
  }
}

TEST_CASE("A string that does not end is a fault at its opening quote") {
  CHECK(fails_at("[\"abc", 1, "does not end"));
  CHECK(fails_at("  \"abc\\\"", 2, "does not end"));
  CHECK(fails_at("\"" + std::string(1000, 'x'), 0, "does not end"));
}

TEST_CASE("Control characters in strings must be escaped, DEL not") {
  for (int control = 0; control < 0x20; ++control) {
    CHECK(fails_at(in_quotes(std::string("ab") + static_cast<char>(control)), 3,
                   "control character"));
  }
  CHECK(accepts("\"\x7f\""));
}

TEST_CASE("Strings are UTF-8: nothing overlong, no surrogates, nothing above U+10FFFF") {
  CHECK(
      accepts("\"\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xef\xbf\xbf \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf\""));
  for (const char* bytes : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                            "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                            "\xc3", "\xe2\x82", "\xc3(", "\xf0\x9f\x98("}) {
    CHECK(fails_at(in_quotes(std::string(1, 'a') + bytes), 2, "not UTF-8"));
  }
}

TEST_CASE("A string's end, escape or fault is found at each distance") {
  for (size_t length = 0; length < 40; ++length) {
    CAPTURE(length);
    const std::string plain(length, 'x');
    for (const std::string behind : {"", "      ", "                    "}) {
      CHECK(!skip_all(in_quotes(plain, behind)).failed);
      CHECK(skip_all(in_quotes(plain, behind)).offset == length + 2);
      CHECK(decoded(in_quotes(plain + "\\n", behind)) == plain + "\n");
      CHECK(fails_at(in_quotes(plain + "\x1f", behind), length + 1, "control"));
      CHECK(fails_at(in_quotes(plain + "\xff", behind), length + 1, "UTF-8"));
    }
  }
}

TEST_CASE("Every byte is plain or not for eight, for sixteen and for one at a time alike") {
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
    CAPTURE(byte);
    for (unsigned at = 0; at < 16; ++at) {
      // A second hit behind the first must not move it.
      std::string text = std::string(at, '~') + static_cast<char>(byte) + "!#[]\x7f~~ ~~~~~~~~~~~";
      const unsigned first = is_plain ? 16 : at;
      CHECK(json_words::plain_of_8(text.data()) == std::min(8U, first));
#ifdef __SSE2__
      CHECK(json_words::plain_of_16(text.data()) == first);
#endif
    }
  }
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

TEST_CASE("next_member_is takes the expected key only and leaves another one to next_member") {
  JsonReader reader(R"( { "a" : 1 ,"b":2, "c":3, "\u0064":4, "ee":5} )");
  JsonString key;
  uint64_t value = 0;
  REQUIRE(reader.peek() == JsonKind::Object);
  reader.begin_object();
  CHECK(!reader.next_member_is(
      "a"));  // white space in front of the colon is left to next_member, too
  REQUIRE(reader.next_member(key));
  CHECK(key.raw == "a");
  CHECK(reader.try_unsigned(value));
  CHECK(!reader.next_member_is("c"));
  CHECK(!reader.next_member_is(""));
  CHECK(reader.next_member_is("b"));
  CHECK(reader.try_unsigned(value));
  CHECK(value == 2);
  CHECK(reader.next_member_is("c"));
  CHECK(reader.try_unsigned(value));
  CHECK(!reader.next_member_is("d"));
  REQUIRE(reader.next_member(key));
  CHECK(key.is("d"));
  CHECK(reader.try_unsigned(value));
  CHECK(!reader.next_member_is("e"));
  CHECK(!reader.next_member_is("eee"));
  CHECK(reader.next_member_is("ee"));
  CHECK(reader.try_unsigned(value));
  CHECK(!reader.next_member_is("ee"));
  CHECK(!reader.next_member(key));
  CHECK(!reader.failed());
}

TEST_CASE("next_member_is needs the comma between members") {
  JsonReader reader(R"({"a":1 "b":2})");
  JsonString key;
  uint64_t value = 0;
  REQUIRE(reader.peek() == JsonKind::Object);
  reader.begin_object();
  CHECK(reader.next_member_is("a"));
  CHECK(reader.try_unsigned(value));
  CHECK(!reader.next_member_is("b"));
  CHECK(!reader.next_member(key));
  CHECK(reader.fault()->offset == 7);
}

TEST_CASE("next_member_is reads no byte behind the end") {
  const std::string text = R"({"key":1})";
  for (size_t length = 1; length < 7; ++length) {
    const std::vector<char> cut(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
    JsonReader reader({cut.data(), cut.size()});
    REQUIRE(reader.peek() == JsonKind::Object);
    reader.begin_object();
    CHECK(!reader.next_member_is("key"));
    CHECK(!reader.failed());
  }
}

TEST_CASE("try_string takes strings and leaves all else") {
  JsonString text;
  JsonReader reader(R"( "a" 7)");
  CHECK(reader.try_string(text));
  CHECK(text.raw == "a");
  CHECK(!reader.try_string(text));
  CHECK(!reader.failed());
  CHECK(reader.peek() == JsonKind::Number);
  JsonReader broken("\"a");
  CHECK(!broken.try_string(text));
  CHECK(broken.failed());
}

TEST_CASE("A second reader begins at the offset of a value, with offsets of the same text") {
  const std::string_view text = R"({"a":1,"b":[2,x]})";
  JsonReader reader = JsonReader::at(text, 11);
  REQUIRE(reader.peek() == JsonKind::Array);
  reader.begin_array();
  REQUIRE(reader.next_element());
  CHECK(reader.offset() == 12);
  CHECK(reader.number() == "2");
  REQUIRE(reader.next_element());
  CHECK(reader.peek() == JsonKind::Malformed);
  CHECK(reader.fault()->offset == 14);
}
