// Mending profiles: what can be put right without inventing data. Sources: the same as of sentry.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof {

// What was done, and how often.
struct RepairChange {
  std::string_view what;  // "id written as 32 lower-case hex digits"; static storage
  std::string_view rule;  // the rule that was broken; empty if it was none, or one of several
  uint64_t count = 0;
};

enum class RepairOutcome : uint8_t {
  Whole,       // `text` is all of the profile, with or without changes
  Unreadable,  // no JSON object, or one with a syntax error: nothing can be mended
  Envelope,    // not taken: its parts are
};

struct RepairResult {
  std::string text;  // byte for byte what came in if there are no changes
  RepairOutcome outcome = RepairOutcome::Whole;
  std::vector<RepairChange> changes;
};

// Mends a V1 profile or a V2 chunk. What stays wrong is for validate() to tell. Unknown fields,
// white space and the digits of numbers stay as they are; of a field that is there twice nobody
// knows which one is true, so both stay, and the lists then stay, too. Mending twice is the same as
// once. Any bytes are fine. Time is linear, but for sorting. Takes the text itself, to free it on
// the way: memory with it is at most three times its size, plus 8 MiB.
RepairResult repair(std::string text);

}  // namespace sentry_prof
