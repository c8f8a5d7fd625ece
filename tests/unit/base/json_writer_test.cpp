#include "base/json_writer.h"

#include "support/catch2.h"

using sentry_prof::JsonWriter;

namespace {

std::string quoted(std::string_view text) {
  std::string out;
  JsonWriter(out).string(text);
  return out;
}

}  // namespace

TEST_CASE("JsonWriter sets commas and colons") {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.member("a", "1");
  json.key("b");
  json.begin_array();
  json.number(2u);
  json.begin_object();
  json.end_object();
  json.boolean(false);
  json.raw("3,4");
  json.number_string(5);
  json.end_array();
  json.member_if_not_empty("c", "");
  json.key("d");
  json.hex_string(0xabcdef);
  json.end_object();
  CHECK(out == R"({"a":"1","b":[2,{},false,3,4,"5"],"d":"0xabcdef"})");
}

TEST_CASE("JsonWriter writes the largest number whole") {
  std::string out;
  JsonWriter json(out);
  json.number(UINT64_MAX);
  json.hex_string(UINT64_MAX);
  json.hex_string(0);
  CHECK(out == R"(18446744073709551615,"0xffffffffffffffff","0x0")");
}

TEST_CASE("JsonWriter escapes what RFC 8259 demands and nothing else") {
  CHECK(quoted("a\"b\\c/d") == R"("a\"b\\c/d")");
  CHECK(quoted("\n\r\t\x01\x1f") == R"("\n\r\t\u0001\u001f")");
  CHECK(quoted("\x7f") == "\"\x7f\"");
  CHECK(quoted(std::string_view("\0", 1)) == R"("\u0000")");
}

TEST_CASE("JsonWriter repairs UTF-8") {
  CHECK(quoted("\xc3\xa9") == "\"\xc3\xa9\"");
  CHECK(quoted("a\xc3") == "\"a\xef\xbf\xbd\"");
  CHECK(quoted("\xff\xfe") == "\"\xef\xbf\xbd\xef\xbf\xbd\"");
}
