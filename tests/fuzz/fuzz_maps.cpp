// The text of /proc/PID/maps, whose paths the target chooses.
#include "target/mapping_kind.h"
#include "target/proc.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace sentry_prof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto mappings = target::parse_maps(text, 1);
  size_t path_bytes = 0;
  for (const target::MappingFacts& mapping : mappings) {
    target::kind_of_mapping(mapping.path);
    path_bytes += mapping.path.size();
    if (mapping.size_bytes == 0 || mapping.begin.value + mapping.size_bytes < mapping.begin.value) {
      std::abort();
    }
  }
  // Every line is one mapping at most, and a path is never longer than its line.
  if (path_bytes > size || mappings.size() > size) std::abort();
  return 0;
}
