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

// V8 writes some 100 bytes a function: this is half a million of them. What lies beyond is not
// read.
inline constexpr uint64_t kMaxPerfMap_bytes = uint64_t{64} << 20;

struct PerfMapNames {
  std::vector<std::optional<std::string>> names;  // one an address; nullopt: no line holds it
  uint64_t bad_lines = 0;                         // that are not of the form
};

// Names for runtime addresses sorted in ascending order, as they stand in the file, at most 1 KiB
// each. Of several lines that hold an address the last counts: memory is used again, and lines are
// only added. A last line without its end is being written, and left out. One pass in pieces:
// memory is bounded by the number of addresses. A file that cannot be read (any more) gives what
// was read of it.
PerfMapNames names_in_perf_map(const ByteSource& file,
                               std::span<const RuntimeAddress> sorted_addresses);

}  // namespace sentry_prof::symbols
