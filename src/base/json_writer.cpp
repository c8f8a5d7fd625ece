#include "base/json_writer.h"

#include "base/json_words.h"
#include "base/utf8.h"

#include <charconv>

namespace sentry_prof {
namespace {

size_t plain_length(std::string_view text) {
  const char* const end = text.data() + text.size();
  return static_cast<size_t>(json_words::behind_plain(text.data(), end) - text.data());
}

void append_escape(std::string& out, char c) {
  static constexpr char kDigits[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto byte = static_cast<uint8_t>(c);
  out += "\\u00";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

void append_number(std::string& out, uint64_t value, int base) {
  char digits[20];  // of 2^64 - 1 in decimal
  const auto end = std::to_chars(digits, digits + sizeof(digits), value, base).ptr;
  out.append(digits, end);
}

}  // namespace

void JsonWriter::key(std::string_view name) {
  separate();
  quoted(name);
  out_ += ':';
  needs_comma_ = false;
}

void JsonWriter::string(std::string_view text) {
  separate();
  quoted(text);
}

void JsonWriter::unsigned_number(uint64_t value) {
  separate();
  append_number(out_, value, 10);
}

void JsonWriter::hex_string(uint64_t value) {
  separate();
  out_ += "\"0x";
  append_number(out_, value, 16);
  out_ += '"';
}

void JsonWriter::number_string(uint64_t value) {
  separate();
  out_ += '"';
  append_number(out_, value, 10);
  out_ += '"';
}

void JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
}

void JsonWriter::quoted(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    const size_t plain = plain_length(text);
    out_ += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    if (static_cast<uint8_t>(text[0]) < 0x80) {
      append_escape(out_, text[0]);
      text.remove_prefix(1);
      continue;
    }
    const size_t length = utf8_sequence_length(text);
    out_ += length != 0 ? text.substr(0, length) : kReplacementCharacter;
    text.remove_prefix(length != 0 ? length : utf8_bad_length(text));
  }
  out_ += '"';
}

}  // namespace sentry_prof
