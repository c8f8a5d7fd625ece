// Reads JSON values as the server's deserializer does: what it refuses becomes a problem.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

namespace sentry_prof::testing {

namespace dom = simdjson::dom;

struct Problems {
  std::vector<std::string> list;
  bool json_is_refused = false;  // something of which the server says profiling_invalid_json

  void add(std::string_view rule, std::string_view pointer, std::string_view what);
  void refuse(std::string_view rule, std::string_view pointer, std::string_view what);
};

enum class Need {
  Required,
  Optional,  // may be missing, not null
  Nullable,  // may be missing or null
};

// A value and where it stands (RFC 6901).
struct Value {
  dom::element element;
  std::string pointer;
};

// One object, read by field names. Fields that nobody asks for are ignored, as the server does.
class Fields {
 public:
  Fields(Problems& problems, std::string rule, dom::object object, std::string pointer)
      : problems_(problems),
        rule_(std::move(rule)),
        object_(object),
        pointer_(std::move(pointer)) {}

  const std::string& pointer() const { return pointer_; }

  // nullopt if missing or null; a problem if the field may not be, or stands there twice (also
  // under its alias).
  std::optional<Value> value(std::string_view name, Need need, std::string_view alias = {});

  // As above, and a problem if the type or the form is wrong.
  std::optional<std::string_view> text(std::string_view name, Need need,
                                       std::string_view alias = {});
  std::optional<bool> boolean(std::string_view name, Need need);
  std::optional<double> number(std::string_view name, Need need);
  std::optional<uint64_t> unsigned_number(std::string_view name, Need need, uint64_t max,
                                          std::string_view alias = {});
  std::optional<uint64_t> number_or_string(std::string_view name, Need need);
  std::optional<uint64_t> address(std::string_view name, Need need);
  std::optional<std::string_view> uuid(std::string_view name, Need need,
                                       std::string_view alias = {});
  std::optional<Fields> object(std::string_view name, Need need);
  std::optional<dom::array> array(std::string_view name, Need need);

 private:
  void refuse(std::string_view name, std::string_view what) const;

  Problems& problems_;
  std::string rule_;
  dom::object object_;
  std::string pointer_;
};

// The forms behind the types, as in Rust's standard library and the uuid and debugid crates.
std::optional<uint64_t> parse_u64(std::string_view text, int base = 10);
std::optional<uint64_t> parse_address(std::string_view text);
bool is_uuid(std::string_view text);
bool is_debug_id(std::string_view text);
bool is_nil_uuid(std::string_view text);

// The first JSON value of `text`, if it is an object: the server does not look at what follows.
// Empty without one.
std::string_view first_object(std::string_view text);

// Levels of arrays and objects, one in the other.
size_t nesting_depth(dom::element element);
bool contains_null(dom::element element);

}  // namespace sentry_prof::testing
