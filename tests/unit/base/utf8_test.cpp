#include "base/utf8.h"

#include "support/catch2.h"

using namespace sentry_prof;

TEST_CASE("printable_utf8 keeps well-formed text") {
  CHECK(printable_utf8("") == "");
  CHECK(printable_utf8("std::vector<int>::push_back") == "std::vector<int>::push_back");
  CHECK(printable_utf8("gr\xc3\xbc\xc3\x9f \xe4\xb8\xad \xf0\x9f\x94\xa5") ==
        "gr\xc3\xbc\xc3\x9f \xe4\xb8\xad \xf0\x9f\x94\xa5");
}

TEST_CASE("printable_utf8 replaces each maximal bad part once") {
  CHECK(printable_utf8("a\xff"
                       "b") ==
        "a\xef\xbf\xbd"
        "b");
  CHECK(printable_utf8("\x80\x80") == "\xef\xbf\xbd\xef\xbf\xbd");
  // Cut off: three of four bytes are one part (Unicode 15, table 3-8).
  CHECK(printable_utf8("\xf0\x9f\x94") == "\xef\xbf\xbd");
  CHECK(printable_utf8("\xe1\x80"
                       "A") ==
        "\xef\xbf\xbd"
        "A");
  // Overlong slash, a surrogate, and above U+10FFFF: no prefix of them is well-formed.
  CHECK(printable_utf8("\xc0\xaf") == "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(printable_utf8("\xed\xa0\x80") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(printable_utf8("\xf4\x90\x80\x80") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("printable_utf8 replaces control characters") {
  CHECK(printable_utf8("a\nb\x1b[31m\x7f") ==
        "a\xef\xbf\xbd"
        "b\xef\xbf\xbd[31m\xef\xbf\xbd");
  CHECK(printable_utf8("\xc2\x9b"
                       "31m\xc2\xa0") ==
        "\xef\xbf\xbd"
        "31m\xc2\xa0");
  CHECK(printable_utf8(std::string_view("\0x", 2)) == "\xef\xbf\xbdx");
}

TEST_CASE("shortened_utf8 cuts between characters and shows that it did") {
  CHECK(shortened_utf8("abcdef", 6) == "abcdef");
  CHECK(shortened_utf8("abcdefg", 6) == "abc\xe2\x80\xa6");
  CHECK(shortened_utf8("ab\xe4\xb8\xad\xe4\xb8\xad", 7) == "ab\xe2\x80\xa6");
  CHECK(shortened_utf8("abcdef", 2) == "");
}
