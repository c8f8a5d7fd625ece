// What was read of threads' stacks, for all the samples that were taken before.
#pragma once

#include "base/address.h"
#include "recorder/read_memory.h"
#include "unwind/stack_snapshot.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sentry_prof::recorder {

// The default size of a stack (RLIMIT_STACK).
inline constexpr size_t kMaxLiveStack_bytes = 8u << 20;

struct StackRange {
  RuntimeAddress begin;
  size_t size_bytes = 0;

  uint64_t end() const { return begin.value + size_bytes; }
  bool holds(const StackRange& other) const {
    return other.begin.value >= begin.value && other.end() <= end();
  }
};

// Pieces of the stack, upward, and words that show how far it still was what it had been. These are
// read behind each piece, so that they tell of it.
class StackReading {
 public:
  using Piece = StackPiece;
  struct Thread {
    uint32_t pid = 0;
    uint32_t tid = 0;
    bool operator==(const Thread&) const = default;
  };

  const Thread& thread() const { return thread_; }
  // When the last piece was read; 0 if none was.
  uint64_t read_time_ns() const { return read_time_ns_; }
  // Without overlap, with gaps. Valid until the next reading.
  std::span<const Piece> pieces() const { return pieces_; }
  size_t size_bytes() const { return size_bytes_; }
  // Of memory, which is kept for the next reading.
  size_t held_bytes() const { return buffer_.capacity(); }

  void restart(const Thread& thread);
  void release();
  // This one has no pieces, and the other one none from now on.
  void take_room_of(StackReading& other);

  // Reads `piece`, which lies above all others, and behind it `words`, if there are any. Returns
  // how many bytes there were of the piece, from its begin on. What goes on where the last piece
  // ended becomes one with it.
  size_t read_piece(const ReadMemory& read, const MemoryRequest& request, const StackRange& piece,
                    const StackRange& words);

  // Whether the word was read behind the last piece, and what was.
  bool has_behind(RuntimeAddress word) const { return words_.holds({word, sizeof(uint64_t)}); }
  unwind::StackSnapshot behind() const {
    return {words_.begin, std::span(words_now_).first(words_.size_bytes)};
  }
  bool has_in_piece(RuntimeAddress word) const {
    return std::ranges::any_of(
        pieces_, [&](const Piece& piece) { return piece.has(word, sizeof(uint64_t)); });
  }

 private:
  void add_piece(RuntimeAddress begin, size_t size_bytes);
  void place_pieces();

  Thread thread_;
  uint64_t read_time_ns_ = 0;
  std::vector<std::byte> buffer_;
  size_t size_bytes_ = 0;
  std::vector<Piece> pieces_;  // in buffer_, one behind the other
  StackRange words_;
  std::vector<std::byte> words_now_;
};

// The samples of a ring are looked at in one go, tens of a thread. What is read for the first of
// them is as good for the others: it is later than all of them, and sooner than a reading for each
// would be. Of as many threads as are likely to run between two looks at the rings.
class StackReadings {
 public:
  // The thread's of this batch; of a thread without one an empty one. Others are given up where
  // they hold more than kMaxLiveStack_bytes.
  StackReading& of(const StackReading::Thread& thread);
  // The samples that come now may have been taken after what was read.
  void end_batch();

  size_t held_bytes() const;

 private:
  StackReading& oldest_or_of(const StackReading::Thread& thread);
  void make_room_for(StackReading& reading);

  std::array<StackReading, 16> readings_;
};

}  // namespace sentry_prof::recorder
