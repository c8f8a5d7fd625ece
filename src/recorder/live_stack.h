// What a snapshot's end cut off, read from the process that goes on running.
#pragma once

#include "base/address.h"
#include "recorder/stack_reading.h"
#include "unwind/walk.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sentry_prof::recorder {

// What a sample has of a stack that is deeper.
struct CutCopy {
  StackReading::Thread thread;
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

  // Begins with what was read for the thread's other samples of the batch, if it shows the last
  // return addresses of this copy, too. `steps` are those of the walk over the copy, innermost
  // first; not kept. False if nothing can be read at all.
  bool begin(const CutCopy& copy, std::span<const unwind::WalkStep> steps);
  // After a walk over the pieces (at first, over the copy) that found no word at `missing`: whether
  // another one may get farther. What was read for another sample, and is not enough, is left out
  // first; then the stack is read from the end of the last piece on if `missing` is near, else
  // leaving out what lies between. Gives up at the stack's end, at kMaxLiveStack_bytes, and beyond
  // what may be read and walked in a second.
  bool grow(RuntimeAddress missing);
  // What was read beyond the copy, upward.
  std::span<const StackReading::Piece> pieces() const { return pieces_; }
  // Whether anything is known to be there.
  bool goes_on() const;
  // When the last of it was read.
  uint64_t read_time_ns() const { return reading_->read_time_ns(); }
  // All samples that were taken before what was read have been looked at.
  void end_batch();

  // What is read in a second has to be walked, too.
  void charge_walk(size_t frames);

  // Whether the last return addresses of the copy, kFramesInCommon different ones, are where they
  // were.
  bool still_stands();
  // Whether nothing speaks against it: the last return addresses that lie in the outer half of the
  // copy are where they were. A frame so large that there are none says nothing.
  bool may_stand();

 private:
  using Piece = StackReading::Piece;

  bool is_served_by(const StackReading& reading) const;
  bool are_in_place(std::span<const unwind::SeenWord> words);
  bool are_in_place_now(std::span<const unwind::SeenWord> words);
  bool are_near_in_place(std::span<const unwind::SeenWord> words);
  void place_words();
  void refill_budget();
  StackRange next_piece(RuntimeAddress missing) const;
  bool is_beyond(const Piece& piece) const { return piece.end() > copy_.end.value; }
  void show_pieces();
  MemoryRequest request() const { return {copy_.thread.pid, copy_.time_ns}; }

  ReadMemory read_;
  StackReadings readings_;
  StackReading* reading_ = nullptr;  // of the copy's thread
  bool is_served_ = false;           // by what was read for another sample
  bool is_own_ = false;              // it was read for this one
  CutCopy copy_;
  std::vector<unwind::SeenWord> different_words_;  // return addresses, outermost first
  std::vector<unwind::SeenWord> outer_words_;
  std::vector<std::byte> near_words_now_;
  StackRange words_;  // of these, those near to the outermost
  std::span<const StackReading::Piece> pieces_;
  uint64_t budget_bytes_ = 0;
  uint64_t budget_time_ns_ = 0;
};

}  // namespace sentry_prof::recorder
