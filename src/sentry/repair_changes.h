// What repair() does, counted.
#pragma once

#include "sentry_prof/repair.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sentry_prof::sentry {

enum class Change : uint8_t {
  ByteOrderMark,
  Key,
  Null,
  Priority,
  Id,
  DebugId,
  Address,
  NumberToString,
  StringToNumber,
  WholeNumber,
  SamplesSorted,
  Sample,
  FrameTwice,
  FrameUnused,
  StackTwice,
  StackUnused,
  ThreadName,
  QueueName,
};

class ChangeList {
 public:
  void add(Change change, uint64_t how_often = 1) {
    counts_[static_cast<size_t>(change)] += how_often;
  }
  // Those that happened.
  std::vector<RepairChange> listed() const;

 private:
  static constexpr size_t kChanges = static_cast<size_t>(Change::QueueName) + 1;
  std::array<uint64_t, kChanges> counts_{};
};

}  // namespace sentry_prof::sentry
