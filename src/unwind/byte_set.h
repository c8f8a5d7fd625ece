// A set of bytes, as opcode tables are written: ranges.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace sentry_prof::unwind {

// A bit for each value of a byte.
class ByteSet {
 public:
  struct Range {
    unsigned first, last;
  };
  constexpr ByteSet(std::initializer_list<Range> ranges) {
    for (const Range& range : ranges) {
      for (unsigned i = range.first; i <= range.last; ++i) words_[i / 64] |= uint64_t{1} << i % 64;
    }
  }
  constexpr bool has(uint8_t byte) const { return (words_[byte / 64] >> byte % 64 & 1) != 0; }

 private:
  uint64_t words_[4] = {};
};

}  // namespace sentry_prof::unwind
