// The text of a file that is to be judged: read once, expanded, bounded.
#pragma once

#include "sentry_prof/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sentry_prof::cli {

// Why a text was not read: the server would refuse it for its size alone.
struct TooLarge {
  uint64_t limit_bytes = 0;
  std::optional<uint64_t> size_bytes;  // unknown of what is compressed or comes through a pipe
  bool is_envelope = false;
};

struct ProfileInput {
  std::string text;  // empty if it is too large
  std::optional<TooLarge> too_large;
};

// `path` as os::InputFile takes it. Compressed files are told by their content and expanded, once.
// Files, and what compressed ones expand to, are read up to the server's limits: 50 MiB for a
// profile, 200 MiB for an envelope; without `has_size_limit` up to 4 GiB. Memory: the text, and
// never twice of it but while a pipe's text grows. Malformed: damaged compressed data,
// or a perf.data file; other errors
// are of the system.
Result<ProfileInput> read_profile_input(const std::string& path, bool has_size_limit);

}  // namespace sentry_prof::cli
