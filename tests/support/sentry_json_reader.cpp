#include "support/sentry_json_reader.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace sentry_prof::testing {
namespace {

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isxdigit(c) != 0; });
}

bool is_hyphenated_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < 36; ++i) {
    const bool wants_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (wants_dash ? text[i] != '-' : !is_hex(text.substr(i, 1))) return false;
  }
  return true;
}

bool is_simple_uuid(std::string_view text) { return text.size() == 32 && is_hex(text); }

// Calls `visit` for every element below `element`, itself first, with its depth.
template <typename Visit>
void walk(dom::element element, size_t depth, Visit visit) {
  visit(element, depth);
  if (dom::array array; element.get(array) == simdjson::SUCCESS) {
    for (dom::element child : array) walk(child, depth + 1, visit);
  }
  if (dom::object object; element.get(object) == simdjson::SUCCESS) {
    for (auto field : object) walk(field.value, depth + 1, visit);
  }
}

}  // namespace

void Problems::add(std::string_view rule, std::string_view pointer, std::string_view what) {
  std::string line(rule);
  line.append(" ").append(pointer.empty() ? "(whole)" : pointer).append(": ").append(what);
  list.push_back(std::move(line));
}

void Problems::refuse(std::string_view rule, std::string_view pointer, std::string_view what) {
  add(rule, pointer, what);
  json_is_refused = true;
}

void Fields::refuse(std::string_view name, std::string_view what) const {
  problems_.refuse(rule_, pointer_ + "/" + std::string(name), what);
}

std::optional<Value> Fields::value(std::string_view name, Need need, std::string_view alias) {
  std::optional<dom::element> found;
  for (auto field : object_) {
    if (field.key != name && (alias.empty() || field.key != alias)) continue;
    if (found) refuse(name, "stands there twice");
    found = field.value;
  }
  if (!found) {
    if (need == Need::Required) refuse(name, "is missing");
    return std::nullopt;
  }
  if (found->is_null()) {
    if (need != Need::Nullable) refuse(name, "is null");
    return std::nullopt;
  }
  return Value{*found, pointer_ + "/" + std::string(name)};
}

std::optional<std::string_view> Fields::text(std::string_view name, Need need,
                                             std::string_view alias) {
  const auto found = value(name, need, alias);
  if (!found) return std::nullopt;
  std::string_view text;
  if (found->element.get(text) == simdjson::SUCCESS) return text;
  refuse(name, "is no string");
  return std::nullopt;
}

std::optional<bool> Fields::boolean(std::string_view name, Need need) {
  const auto found = value(name, need);
  if (!found) return std::nullopt;
  bool result = false;
  if (found->element.get(result) == simdjson::SUCCESS) return result;
  refuse(name, "is no boolean");
  return std::nullopt;
}

std::optional<double> Fields::number(std::string_view name, Need need) {
  const auto found = value(name, need);
  if (!found) return std::nullopt;
  double result = 0;
  if (found->element.is_number() && found->element.get(result) == simdjson::SUCCESS) return result;
  refuse(name, "is no number");
  return std::nullopt;
}

std::optional<uint64_t> Fields::unsigned_number(std::string_view name, Need need, uint64_t max,
                                                std::string_view alias) {
  const auto found = value(name, need, alias);
  if (!found) return std::nullopt;
  uint64_t result = 0;
  const bool is_integer = found->element.type() != dom::element_type::DOUBLE;
  if (is_integer && found->element.get(result) == simdjson::SUCCESS && result <= max) return result;
  refuse(name, "is no unsigned number in range");
  return std::nullopt;
}

std::optional<uint64_t> Fields::number_or_string(std::string_view name, Need need) {
  const auto found = value(name, need);
  if (!found) return std::nullopt;
  std::string_view text;
  if (found->element.get(text) != simdjson::SUCCESS) return unsigned_number(name, need, UINT64_MAX);
  const auto result = parse_u64(text);
  if (!result) refuse(name, "is no 64-bit number (A5)");
  return result;
}

std::optional<uint64_t> Fields::address(std::string_view name, Need need) {
  const auto found = text(name, need);
  if (!found) return std::nullopt;
  const auto result = parse_address(*found);
  if (!result) refuse(name, "is no address (A4)");
  return result;
}

std::optional<std::string_view> Fields::uuid(std::string_view name, Need need,
                                             std::string_view alias) {
  const auto found = text(name, need, alias);
  if (!found || is_uuid(*found)) return found;
  refuse(name, "is no UUID (A3)");
  return std::nullopt;
}

std::optional<Fields> Fields::object(std::string_view name, Need need) {
  const auto found = value(name, need);
  if (!found) return std::nullopt;
  dom::object object;
  if (found->element.get(object) == simdjson::SUCCESS) {
    return Fields(problems_, rule_, object, found->pointer);
  }
  refuse(name, "is no object");
  return std::nullopt;
}

std::optional<dom::array> Fields::array(std::string_view name, Need need) {
  const auto found = value(name, need);
  if (!found) return std::nullopt;
  dom::array array;
  if (found->element.get(array) == simdjson::SUCCESS) return array;
  refuse(name, "is no array");
  return std::nullopt;
}

// As u64::from_str_radix: one leading plus is allowed, nothing else around the digits.
std::optional<uint64_t> parse_u64(std::string_view text, int base) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value, base);
  if (text.empty() || error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_address(std::string_view text) {
  const bool is_prefixed = text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  return is_prefixed ? parse_u64(text.substr(2), 16) : parse_u64(text, 10);
}

bool is_uuid(std::string_view text) {
  if (text.size() == 45 && text.substr(0, 9) == "urn:uuid:") text.remove_prefix(9);
  if (text.size() == 38 && text.front() == '{' && text.back() == '}') text = text.substr(1, 36);
  return is_simple_uuid(text) || is_hyphenated_uuid(text);
}

bool is_debug_id(std::string_view text) {
  const bool is_hyphenated = text.size() > 8 && text[8] == '-';
  const size_t uuid_length = is_hyphenated ? 36 : 32;
  const std::string_view uuid = text.substr(0, std::min(text.size(), uuid_length));
  if (is_hyphenated ? !is_hyphenated_uuid(uuid) : !is_simple_uuid(uuid)) return false;
  std::string_view age = text.substr(uuid.size());
  if (age.empty()) return true;
  if (is_hyphenated && age.front() != '-') return false;
  if (is_hyphenated) age.remove_prefix(1);
  // 40 digits are a raw build id, which is refused.
  return !age.empty() && age.size() < 8 && is_hex(age);
}

bool is_nil_uuid(std::string_view text) {
  return text.find_first_of("123456789abcdefABCDEF") == std::string_view::npos;
}

std::string_view first_object(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return {};
  size_t depth = 0;
  bool is_in_string = false;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      if (c == '\\') ++i;
      if (c == '"') is_in_string = false;
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return text.substr(begin, i + 1 - begin);
    }
  }
  return {};
}

size_t nesting_depth(dom::element element) {
  size_t deepest = 0;
  walk(element, 0, [&](dom::element e, size_t depth) {
    const size_t own = e.is_array() || e.is_object() ? 1 : 0;
    deepest = std::max(deepest, depth + own);
  });
  return deepest;
}

bool contains_null(dom::element element) {
  bool found = false;
  walk(element, 0, [&](dom::element e, size_t) { found = found || e.is_null(); });
  return found;
}

}  // namespace sentry_prof::testing
