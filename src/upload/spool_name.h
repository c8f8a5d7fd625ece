// Names of files in a spool: what is known of an envelope without opening it.
#pragma once

#include "sentry/dsn.h"
#include "upload/body_encoding.h"
#include "upload/rate_limits.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sentry_prof::upload {

struct SpoolName {
  uint64_t kept_unix_ns = 0;
  uint64_t number = 0;       // in its process: orders what was kept within one tick of a clock
  uint64_t identity = 0;     // random, of a run: whose it was, and two never make the same name
  uint64_t checksum = 0;     // of the bytes, see checksum_of
  uint64_t destination = 0;  // whose it is, see destination_of; 0: anybody's
  Categories categories;
  BodyEncoding encoding = BodyEncoding::Identity;

  bool operator==(const SpoolName&) const = default;
};

// Numbers of 16 hex digits, so that the order of names is the order of time, then categories (c
// chunk, u chunk of a user interface, p profile, t transaction) and packing:
// "T-N-I-S-D.pt.gz.envelope", without D if there is no destination.
std::string to_text(const SpoolName& name);
// Nothing for whatever to_text does not write.
std::optional<SpoolName> parse_spool_name(std::string_view text);

// Of its host and project; not zero. What else a DSN has, key, scheme, port and path, may change
// while something waits.
uint64_t destination_of(const sentry::Dsn& dsn);

// FNV-1a, 64 bits: tells a file that a disk cut or filled with zeros. No defence against a forger.
uint64_t checksum_of(std::string_view bytes);

}  // namespace sentry_prof::upload
