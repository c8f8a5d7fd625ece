// Reads JSON as Sentry's server does (RFC 8259, with the strictness of serde_json): token by token, from bytes
// in memory, with memory that does not depend on them. Each token knows its offset.
//
// Not a general library's job: a judge of what another parser accepts has to agree with it on nesting, duplicate
// keys, trailing bytes, a BOM, lone surrogates and numbers, has to go on behind a value of the wrong type, and has
// to know where each value stands. simdjson, the faster reader of what is well-formed, is the oracle of the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sentry_prof {

enum class JsonKind : uint8_t { Object, Array, String, Number, True, False, Null, Malformed };

// The text between the quotes, as it stands in the file.
struct JsonString {
  std::string_view raw;
  bool has_escapes = false;

  // With escapes resolved. `buffer` holds the text if there were any.
  std::string_view text(std::string& buffer) const;
  bool is(std::string_view plain) const;
};

struct JsonFault {
  size_t offset = 0;
  const char* what = "";  // "expected ':'", a constant
};

// The caller follows the text: peek() says what comes, the function of that kind reads it. After a fault every call does
// nothing, peek() is Malformed and begin_*() and next_*() are false.
class JsonReader {
 public:
  // serde_json refuses the 128th container inside one another.
  static constexpr uint32_t kMaxDepth = 127;

  // `text` must outlive the reader and what it returns.
  explicit JsonReader(std::string_view text)
      : begin_(text.data()), cursor_(text.data()), end_(text.data() + text.size()) {}

  // Skips white space.
  JsonKind peek();

  // Precondition of each: peek() returned that kind.
  void begin_object() { begin_container(); }
  void begin_array() { begin_container(); }
  // Moves to the next member's value and gives its key; false behind the last one.
  bool next_member(JsonString& key);
  // Moves to the next element; false behind the last one.
  bool next_element();
  JsonString string();
  // As it stands in the text; the grammar has been checked, the range has not.
  std::string_view number();
  void literal();  // true, false, null
  // Any value, all of it checked, without recursion.
  void skip_value();

  size_t offset() const { return static_cast<size_t>(cursor_ - begin_); }
  bool failed() const { return fault_.has_value(); }
  const std::optional<JsonFault>& fault() const { return fault_; }

  // A second reader of the same text at the offset of a value that was read before.
  static JsonReader at(std::string_view text, size_t offset);

 private:
  void begin_container();
  void skip_space();
  void skip_scalar(JsonKind kind);
  bool open_next(char close);
  bool skip_escape();
  bool skip_hex4(uint32_t& unit);
  bool skip_non_ascii();
  bool skip_digits();
  void fail_at(const char* where, const char* what);

  const char* begin_;
  const char* cursor_;
  const char* end_;
  uint32_t depth_ = 0;
  bool is_first_ = false;  // the next member or element is its container's first
  std::optional<JsonFault> fault_;
};

// RFC 8259's number as an unsigned integer as serde_json sees one: no sign, no fraction, no exponent, at most 64 bits.
std::optional<uint64_t> json_unsigned(std::string_view number);
// The nearest double; nothing if that is infinite.
std::optional<double> json_double(std::string_view number);

}  // namespace sentry_prof
