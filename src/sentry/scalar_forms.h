// The spellings of single values: what the server's parsers take, and which of them the documents
// ask for. Each takes the text of a JSON string with its escapes resolved.
#pragma once

#include "sentry_prof/profile.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace sentry_prof::sentry {

// 32 hex digits; 8-4-4-4-12 of them; the latter in braces or behind "urn:uuid:". Any case, any
// version. Source: the uuid crate's parser, Relay's EventId.
std::optional<Uuid> parse_uuid(std::string_view text);
// As the documents want an id: 32 lower-case hex digits.
bool is_plain_id(std::string_view text);
// Version 4 of RFC 4122.
bool is_random_uuid(const Uuid& uuid);

// A UUID with or without dashes and an age in hex behind it: with a dash if the UUID has dashes,
// without one (at most 7 digits, so that a whole build id of 40 digits is none) if it has not.
struct DebugIdForm {
  Uuid uuid;
  bool has_dashes = false;
  bool has_age = false;
};
std::optional<DebugIdForm> parse_debug_id(std::string_view text);

// Rust's u64::from_str: digits, at most one '+' in front.
std::optional<uint64_t> parse_unsigned_text(std::string_view text);
// Rust's f64::from_str: RFC 8259's numbers, "5.", ".5", "+5", and "inf", "infinity", "nan" in any
// case.
bool is_float_text(std::string_view text);

// "0x" or "0X" and hex digits; without that, decimal. Source: Relay's Addr.
std::optional<uint64_t> parse_address(std::string_view text);
bool is_hex_address(std::string_view text);

// One or more hex digits.
bool is_hex_text(std::string_view text);
bool is_lower_hex_text(std::string_view text);

}  // namespace sentry_prof::sentry
