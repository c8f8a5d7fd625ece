// The copied user stack of one sample: all the memory that a walk may read.
#pragma once

#include "base/address.h"
#include "base/byte_reader.h"

#include <cstdint>
#include <cstring>

namespace sentry_prof::unwind {

// `bytes` holds the target's memory from `begin` (the stack pointer at the interrupt) upward. The
// bytes stay where the caller has them, normally in the kernel's ring; nothing is copied. `is_cut`:
// as much was copied as was asked for, so the stack may go on behind; else its memory ends there.
// `live`: what was read of the stack behind `bytes`, later.
class StackSnapshot {
 public:
  StackSnapshot(RuntimeAddress begin, Bytes bytes, bool is_cut = true, Bytes live = {})
      : begin_(begin.value), bytes_(bytes), live_(live), is_cut_(is_cut) {}

  RuntimeAddress begin() const { return {begin_}; }
  size_t size_bytes() const { return bytes_.size() + live_.size(); }
  bool is_cut() const { return is_cut_; }

  // Reads a little-endian word. False if any byte of it lies outside the snapshot.
  [[nodiscard]] bool read_u64(RuntimeAddress address, uint64_t& value) const {
    const uint64_t offset = address.value - begin_;  // wraps to a huge value below begin_
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(value)) {
      return read_live(offset, sizeof(value), value);
    }
    std::memcpy(&value, bytes_.data() + offset, sizeof(value));
    return true;
  }

  size_t copied_bytes() const { return bytes_.size(); }
  // Asks for the cache line at `offset`, below copied_bytes(), without waiting for it.
  void prefetch(uint64_t offset) const { __builtin_prefetch(bytes_.data() + offset, 0, 2); }

  // `size` is 1, 2, 4 or 8; the value is zero-extended (DW_OP_deref_size).
  [[nodiscard]] bool read_sized(RuntimeAddress address, unsigned size, uint64_t& value) const {
    const uint64_t offset = address.value - begin_;
    if (size > sizeof(value)) return false;
    if (offset > bytes_.size() || bytes_.size() - offset < size) {
      return read_live(offset, size, value);
    }
    value = 0;
    std::memcpy(&value, bytes_.data() + offset, size);
    return true;
  }

  // True if the address lies above what was copied: the stack was cut there, or ends there.
  bool is_beyond_end(RuntimeAddress address) const {
    return address.value >= begin_ && address.value - begin_ + sizeof(uint64_t) > size_bytes();
  }

  // True for a word that was not copied with the sample but read later.
  bool is_live(RuntimeAddress address) const {
    const uint64_t offset = address.value - begin_;
    return offset >= bytes_.size() && offset < size_bytes();
  }

 private:
  // A word on both sides of the seam counts as outside: the stack pointer is a multiple of eight
  // wherever there is a return address.
  [[gnu::noinline]] bool read_live(uint64_t offset, unsigned size, uint64_t& value) const {
    if (offset < bytes_.size()) return false;
    const uint64_t inside = offset - bytes_.size();
    if (inside > live_.size() || live_.size() - inside < size) return false;
    value = 0;
    std::memcpy(&value, live_.data() + inside, size);
    return true;
  }

  uint64_t begin_;
  Bytes bytes_;
  Bytes live_;
  bool is_cut_;
};

}  // namespace sentry_prof::unwind
