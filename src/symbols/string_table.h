// The strings of a symbol table's names.
#pragma once

#include "base/byte_source.h"
#include "elf/layout.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sentry_prof::symbols {

// Reads the file through a window. To be asked in ascending order of offsets: names of a profile
// lie all over a table, and the window then goes over it once.
class StringTable {
 public:
  // Of a longer string the first ones are given.
  static constexpr size_t kMaxString_bytes = 4096;

  // Both arguments must outlive this object.
  StringTable(const ByteSource& file, const elf::Section& strings)
      : file_(file), strings_(strings) {}

  // The string at `offset`, until the next call. None if it is empty, outside, not terminated, or
  // the file cannot be read there.
  std::optional<std::string_view> at(uint32_t offset);

 private:
  static constexpr uint64_t kWindow_bytes = 16 << 10;
  static_assert(kWindow_bytes >= kMaxString_bytes);

  bool read_window(uint64_t offset);
  std::optional<std::string_view> in_window(uint64_t offset) const;

  const ByteSource& file_;
  const elf::Section& strings_;
  std::vector<char> window_;
  uint64_t window_begin_ = 0;
};

}  // namespace sentry_prof::symbols
