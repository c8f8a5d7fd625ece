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

// Of the text.
enum class InputLimit : uint8_t {
  Server,    // 50 MiB of a profile, 200 MiB of an envelope
  Envelope,  // 200 MiB of both: nothing larger can be sent
  None,      // 4 GiB
};

// `path` as os::InputFile takes it. Compressed files are told by their content and expanded, once.
// Files, and what compressed ones expand to, are read up to the limit. Memory: the text, and never
// twice of it but while a pipe's text grows. Malformed: damaged compressed data, or a perf.data
// file; other errors are of the system.
Result<ProfileInput> read_profile_input(const std::string& path, InputLimit limit);

}  // namespace sentry_prof::cli
