// Strings: escapes, UTF-8, comparison, and the search for their ends.
#include "base/json_words.h"
#include "json_reader_cases.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

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

}  // namespace

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
