// The text of /tmp/perf-PID.map, which the target writes, or whoever was there first.
#include "symbols/perf_map.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

using namespace sentry_prof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes);
  const MemoryByteSource file(std::vector<std::byte>(begin, begin + size));
  const std::vector<RuntimeAddress> addresses{{0}, {1}, {0x1000}, {0x7f00'0000'0000}, {UINT64_MAX}};
  symbols::PerfMapBudget budget;
  const auto found = symbols::names_in_perf_map(file, addresses, budget);
  if (found.names.size() != addresses.size() || found.bad_lines > size) std::abort();
  for (const auto& name : found.names) {
    if (name && (name->empty() || name->size() > size)) std::abort();
  }
  return 0;
}
