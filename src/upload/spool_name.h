// Names of files in a spool: what is known of an envelope without opening it.
#pragma once

#include "upload/body_encoding.h"
#include "upload/rate_limits.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sentry_prof::upload {

struct SpoolName {
  uint64_t kept_unix_ns = 0;
  uint64_t number = 0;    // in its process: orders what was kept within one tick of a clock
  uint64_t identity = 0;  // random: two processes never make the same name
  uint64_t checksum = 0;  // of the bytes, see checksum_of
  Categories categories;
  BodyEncoding encoding = BodyEncoding::Identity;

  bool operator==(const SpoolName&) const = default;
};

// Four numbers of 16 hex digits, so that the order of names is the order of time, then categories
// (c chunk, u chunk of a user interface, p profile, t transaction) and packing:
// "T-N-I-S.pt.gz.envelope".
std::string to_text(const SpoolName& name);
// Nothing for whatever to_text does not write.
std::optional<SpoolName> parse_spool_name(std::string_view text);

// FNV-1a, 64 bits: tells a file that a disk cut or filled with zeros. No defence against a forger.
uint64_t checksum_of(std::string_view bytes);

}  // namespace sentry_prof::upload
