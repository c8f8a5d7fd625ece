// What an envelope has to know of the profile that it carries.
#pragma once

#include "sentry_prof/result.h"
#include "sentry_prof/sentry.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::sentry {

// An image's type as sentry-prof and other clients write it, and the server's own word for it.
inline constexpr std::string_view kElfToken = "\"elf\"";
inline constexpr std::string_view kSymbolicToken = "\"symbolic\"";

struct PayloadFacts {
  SentryFormat kind = SentryFormat::V2;
  std::string platform;
  // V1 only:
  std::string release, environment, dist;
  uint64_t start_unix_ns = 0;
  uint64_t last_sample_ns = 0;  // after the start
  std::string transaction_id, transaction_name, trace_id;
  // Where kElfToken stands as an image's type, in order.
  std::vector<size_t> elf_type_offsets;
};

// One pass over a profile, of which only these fields are looked at: judging it is validate's.
// Malformed if it is no JSON, neither V1 nor V2, or if one of the fields that an envelope needs is
// missing.
Result<PayloadFacts> read_payload_facts(std::string_view payload);

}  // namespace sentry_prof::sentry
