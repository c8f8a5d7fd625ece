// A copy of the tracee's stack that is kept fresh where an instruction can have changed it.
#pragma once

#include "tracee.h"
#include "unwind/stack_snapshot.h"

#include <cstddef>
#include <cstdint>

namespace sentry_prof::judge {

// A small stack is read whole at each step. Of a large one that would take most of the time, and of
// what a walk reads, one instruction can only change the innermost frame: what lies at its stack
// pointer, and the saved registers and return address at its other end. So these two windows are
// read at each step, and the whole stack now and then, or where a walk disagreed.
class StackMirror {
 public:
  explicit StackMirror(const Tracee& tracee) : tracee_(tracee) {}
  StackMirror(const StackMirror&) = delete;
  StackMirror& operator=(const StackMirror&) = delete;
  ~StackMirror() { clear(); }

  void clear();
  // `slot`: where the innermost return address lies, or 0.
  void refresh(uint64_t sp, uint64_t slot);
  void refresh_all(uint64_t sp);

  uint64_t word_at(uint64_t address) const;
  bool holds(uint64_t address) const { return address >= low_ && address < high_; }
  // From `sp` to the end of its mapping; not cut.
  unwind::StackSnapshot snapshot(uint64_t sp) const;

 private:
  // Below that, reading costs a few per cent of a step.
  static constexpr uint64_t kSmallStack_bytes = 16u << 10;
  static constexpr uint64_t kWindow_bytes = 512;
  static constexpr uint64_t kMaxMirrored_bytes = 64u << 20;
  static constexpr unsigned kWholeEvery = 8192;

  void move_to(uint64_t sp);
  void read(uint64_t begin, uint64_t end);
  std::byte* at(uint64_t address) const { return bytes_ + (address - low_); }

  const Tracee& tracee_;
  std::byte* bytes_ = nullptr;  // of [low_, high_), mapped, since most of it is never touched
  uint64_t low_ = 0;
  uint64_t high_ = 0;
  unsigned until_whole_ = 0;
};

}  // namespace sentry_prof::judge
