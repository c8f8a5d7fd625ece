// The frames of a walk, of which only so many are kept.
#pragma once

#include "unwind/walked_frame.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace sentry_prof::unwind {

// Keeps as many frames as there is room for: of a longer walk the innermost ones in the first half,
// and the outermost ones, turning round, in the second.
class KeptFrames {
 public:
  explicit KeptFrames(std::span<WalkedFrame> room) : room_(room) {}

  WalkedFrame& add(const WalkedFrame& frame) {
    WalkedFrame& place = room_[count_ < room_.size() ? count_ : next_to_replace()];
    ++count_;
    return place = frame;
  }

  // The one that was added last, if any was.
  WalkedFrame& last() {
    if (count_ <= room_.size()) return room_[count_ - 1];
    return turned_ == 0 ? room_.back() : room_[static_cast<size_t>(first_of_turn() + turned_ - 1)];
  }

  // All that were added.
  size_t count() const { return count_; }
  size_t left_out() const { return count_ - std::min(count_, room_.size()); }

  // Leaf first.
  std::span<const WalkedFrame> in_order() {
    std::rotate(room_.begin() + first_of_turn(), room_.begin() + first_of_turn() + turned_,
                room_.end());
    turned_ = 0;
    return room_.first(std::min(count_, room_.size()));
  }

 private:
  std::ptrdiff_t first_of_turn() const { return static_cast<std::ptrdiff_t>(room_.size() / 2); }

  size_t next_to_replace() {
    const std::ptrdiff_t place = first_of_turn() + turned_;
    if (place + 1 == static_cast<std::ptrdiff_t>(room_.size())) {
      turned_ = 0;
    } else {
      ++turned_;
    }
    return static_cast<size_t>(place);
  }

  std::span<WalkedFrame> room_;
  size_t count_ = 0;
  std::ptrdiff_t turned_ = 0;  // where the oldest of the second half is
};

}  // namespace sentry_prof::unwind
