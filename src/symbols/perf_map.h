// Names of code that a compiler made while the program ran (JIT), as such compilers tell perf:
// lines "START SIZE NAME" in /tmp/perf-PID.map, both numbers hexadecimal. Pure.
// Source: tools/perf/Documentation/jit-interface.txt of the Linux sources.
#pragma once

#include "base/address.h"
#include "base/byte_source.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sentry_prof::symbols {

// V8 writes some 100 bytes a function: this is half a million of them. Of a larger file the last
// part is read, which is what the program compiled last.
inline constexpr uint64_t kMaxPerfMap_bytes = uint64_t{64} << 20;

// What may be done for all maps of a chunk. Reading so much takes a second. A hostile map could let
// each of a million lines hold all addresses, where real ones hold an address a few times; so many
// comparisons take half a second.
struct PerfMapBudget {
  uint64_t bytes = uint64_t{256} << 20;
  uint64_t comparisons = 1 << 24;
};

struct PerfMapNames {
  std::vector<std::optional<std::string>> names;  // one an address; nullopt: no line holds it
  uint64_t bad_lines = 0;                         // that are not of the form
  bool is_cut = false;  // not all was read or compared: names may be missing, or old
};

// Names for runtime addresses sorted in ascending order, as they stand in the file, at most 1 KiB
// each. Of several lines that hold an address the last counts: memory is used again, and lines are
// only added. A last line without its end is being written, and left out. One pass in pieces:
// memory is bounded by the number of addresses. A file that cannot be read (any more) gives what
// was read of it. What is done is taken from `budget`.
PerfMapNames names_in_perf_map(const ByteSource& file,
                               std::span<const RuntimeAddress> sorted_addresses,
                               PerfMapBudget& budget);

}  // namespace sentry_prof::symbols
