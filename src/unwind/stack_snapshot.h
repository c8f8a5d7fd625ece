// The copied user stack of one sample, and what else is known of the same stack: all the memory
// that a walk may read.
#pragma once

#include "base/address.h"
#include "base/byte_reader.h"
#include "base/stack_piece.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace sentry_prof::unwind {

// `bytes` holds the target's memory from `begin` (the stack pointer at the interrupt) upward. The
// bytes stay where the caller has them, normally in the kernel's ring; nothing is copied. `behind`:
// what is known of the stack behind them.
// `pieces`: what was copied beside it, or read later, of the stack behind `bytes`, with gaps,
// upward.
class StackSnapshot {
 public:
  enum class Behind : uint8_t {
    Nothing,  // its memory ends there
    Unknown,  // fewer bytes than were asked for: mostly nothing, else a page that was not there
    More,     // as many as were asked for
  };

  StackSnapshot(RuntimeAddress begin, Bytes bytes, Behind behind = Behind::Unknown,
                std::span<const StackPiece> pieces = {})
      : begin_(begin.value), bytes_(bytes), pieces_(pieces), behind_(behind) {}

  RuntimeAddress begin() const { return {begin_}; }
  // Behind the last byte that may be read.
  uint64_t end() const { return pieces_.empty() ? begin_ + bytes_.size() : pieces_.back().end(); }
  bool may_go_on() const { return behind_ != Behind::Nothing; }
  bool goes_on() const { return behind_ == Behind::More; }

  // Reads a little-endian word. False if any byte of it lies outside the snapshot.
  [[nodiscard]] bool read_u64(RuntimeAddress address, uint64_t& value) const {
    const uint64_t offset = address.value - begin_;  // wraps to a huge value below begin_
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(value)) {
      return read_piece(address, sizeof(value), value);
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
      return read_piece(address, size, value);
    }
    value = 0;
    std::memcpy(&value, bytes_.data() + offset, size);
    return true;
  }

  // True if the word at the address lies above what was copied, and was not read later: the stack
  // was cut there, or ends there.
  bool is_beyond_end(RuntimeAddress address) const {
    return address.value >= begin_ && address.value - begin_ + sizeof(uint64_t) > bytes_.size() &&
           piece_with(address, sizeof(uint64_t)) == nullptr;
  }

  // Where the first gap begins below what was copied beside or read later; none without these.
  std::optional<RuntimeAddress> first_gap() const {
    RuntimeAddress behind{begin_ + bytes_.size()};
    while (const StackPiece* const piece = piece_with(behind, sizeof(uint64_t))) {
      behind = {piece->end()};
    }
    return behind.value < end() ? std::optional(behind) : std::nullopt;
  }

 private:
  // A word on both sides of a seam counts as outside: the stack pointer is a multiple of eight
  // wherever there is a return address.
  [[gnu::noinline]] bool read_piece(RuntimeAddress address, unsigned size, uint64_t& value) const {
    const StackPiece* const piece = piece_with(address, size);
    if (piece == nullptr) return false;
    value = 0;
    std::memcpy(&value, piece->bytes.data() + (address.value - piece->begin.value), size);
    return true;
  }

  const StackPiece* piece_with(RuntimeAddress address, size_t size) const {
    for (const StackPiece& piece : pieces_) {
      if (piece.has(address, size)) return &piece;
    }
    return nullptr;
  }

  uint64_t begin_;
  Bytes bytes_;
  std::span<const StackPiece> pieces_;
  Behind behind_;
};

}  // namespace sentry_prof::unwind
