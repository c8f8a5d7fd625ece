// Compact JSON, appended to one string.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace sentry_prof {

// Sets commas; the caller keeps begin/end and key/value in order. Text may be any bytes: ill-formed
// UTF-8 becomes U+FFFD, so that the output is always valid (RFC 8259). Nothing is allocated but the
// output string.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }

  void key(std::string_view name);
  void string(std::string_view text);
  void number(std::unsigned_integral auto value) { unsigned_number(value); }
  void boolean(bool value) { raw(value ? "true" : "false"); }
  // "0x" and lower-case digits, as a string: Sentry's addresses.
  void hex_string(uint64_t value);
  // "123" as a string: Sentry's 64-bit numbers.
  void number_string(uint64_t value);
  // A value that the caller has formatted already, or several with their commas between.
  void raw(std::string_view json);

  // A key and its value.
  void member(std::string_view name, std::string_view text) {
    key(name);
    string(text);
  }
  void member_if_not_empty(std::string_view name, std::string_view text) {
    if (!text.empty()) member(name, text);
  }

 private:
  void separate() {
    if (needs_comma_) out_ += ',';
    needs_comma_ = true;
  }
  void open(char bracket) {
    separate();
    out_ += bracket;
    needs_comma_ = false;
  }
  void close(char bracket) {
    out_ += bracket;
    needs_comma_ = true;
  }
  void unsigned_number(uint64_t value);
  void quoted(std::string_view text);

  std::string& out_;
  bool needs_comma_ = false;
};

}  // namespace sentry_prof
