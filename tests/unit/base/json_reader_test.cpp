// The grammar: kinds, containers, members, faults and their places.
#include "json_reader_cases.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

std::string nested(size_t depth, std::string_view open, std::string_view inner,
                   std::string_view close) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += open;
  text += inner;
  for (size_t i = 0; i < depth; ++i) text += close;
  return text;
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
