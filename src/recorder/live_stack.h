// What a snapshot's end cut off, read from the process that goes on running.
#pragma once

#include "base/address.h"
#include "base/byte_reader.h"
#include "recorder/read_memory.h"
#include "unwind/walk.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sentry_prof::recorder {

// What a sample has of a stack that is deeper.
struct CutCopy {
  uint32_t pid = 0;
  uint64_t time_ns = 0;
  RuntimeAddress end;
  size_t size_bytes = 0;
};

// The part of a stack that is beyond its copy, as it is now. Is it what it was when the sample was
// taken? The frames outside of one stay as they are until it returns: none of its callers runs
// before. So the last frames of the copy are looked at, whether they still stand.
class LiveStack {
 public:
  explicit LiveStack(ReadMemory read) : read_(std::move(read)) {}

  // Begins anew, without pieces. `steps` are those of the walk over the copy, innermost first; not
  // kept. False if nothing can be read at all.
  bool begin(const CutCopy& copy, std::span<const unwind::WalkStep> steps);
  // Reads the stack at `missing`, above all pieces: from the end of the last one on if that is
  // near, else leaving out what lies between. Gives up at the stack's end, at kMaxLiveStack_bytes,
  // and beyond what may be read in a second.
  bool grow(RuntimeAddress missing);
  std::span<const unwind::StackSnapshot::Piece> pieces() const { return pieces_; }
  // When the last of them were read.
  uint64_t read_time_ns() const { return read_time_ns_; }

  // What is read in a second has to be walked, too.
  void charge_walk(size_t frames);

  // Whether the last return addresses of the copy, kFramesInCommon different ones, are where they
  // were.
  bool still_stands();
  // Whether nothing speaks against it: the last return addresses that lie in the outer half of the
  // copy are where they were. A frame so large that there are none says nothing.
  bool may_stand();

 private:
  using Piece = unwind::StackSnapshot::Piece;

  bool are_in_place(std::span<const unwind::SeenWord> words);
  bool are_near_in_place(std::span<const unwind::SeenWord> words);
  void place_words();
  bool spend(size_t bytes);
  RuntimeAddress begin_of_next(RuntimeAddress missing) const;
  void place_pieces();

  ReadMemory read_;
  CutCopy copy_;
  std::vector<unwind::SeenWord> different_words_;  // return addresses, outermost first
  std::vector<unwind::SeenWord> outer_words_;
  uint64_t read_time_ns_ = 0;
  std::vector<std::byte> near_words_now_;
  // All words that may be looked at, if they are near to each other, as they were behind the last
  // piece.
  std::vector<std::byte> words_now_;
  RuntimeAddress words_begin_;
  size_t words_size_bytes_ = 0;  // 0: they are not near
  size_t words_read_bytes_ = 0;
  std::vector<std::byte> buffer_;
  size_t size_bytes_ = 0;
  std::vector<Piece> pieces_;  // in buffer_, one behind the other
  uint64_t budget_bytes_ = 0;
  uint64_t budget_time_ns_ = 0;
};

// The default size of a stack (RLIMIT_STACK).
inline constexpr size_t kMaxLiveStack_bytes = 8u << 20;

}  // namespace sentry_prof::recorder
