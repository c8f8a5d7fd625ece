// The text of /proc/PID/maps, whose paths the target chooses.
#include "target/mapping_kind.h"
#include "target/proc.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace sentry_prof;

namespace {

// In the file's order, each byte once, and no end beyond the largest number.
void check_pieces(std::string_view text, const target::MappingFacts& mapping) {
  const auto found = target::find_mapping(text, mapping);
  if (!found) return;
  uint64_t end = 0;
  for (const target::MappedPiece& piece : target::parse_mapped_pieces(text, *found)) {
    if (piece.file_offset < end || piece.size_bytes == 0) std::abort();
    end = piece.file_offset + piece.size_bytes;
    if (end <= piece.file_offset) std::abort();
  }
}

}  // namespace

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
  if (!mappings.empty()) check_pieces(text, mappings.front());
  // Every line is one mapping at most, and a path is never longer than its line.
  if (path_bytes > size || mappings.size() > size) std::abort();
  return 0;
}
