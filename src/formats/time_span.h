// From when to when a file's records are, whatever damaged times are among them.
#pragma once

#include "base/time_units.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sentry_prof::formats {

// From the first to the last of the times that many others are near to, in groups: few damaged
// times must not make a recording of centuries.
class TimeSpan {
 public:
  void add(uint64_t time_ns) {
    const auto is_near = [time_ns](const Group& group) {
      return time_ns + kMaxDistance_ns >= group.first_ns &&
             time_ns <= group.last_ns + kMaxDistance_ns;
    };
    auto group = std::find_if(groups_.begin(), groups_.end(), is_near);
    if (group == groups_.end()) {
      // The smallest has room for the new one: what is damaged comes one by one.
      if (groups_.size() == kMaxGroups) groups_.erase(smallest());
      group = groups_.insert(groups_.end(), Group{time_ns, time_ns, 0});
    }
    group->first_ns = std::min(group->first_ns, time_ns);
    group->last_ns = std::max(group->last_ns, time_ns);
    ++group->times;
  }
  // 0: of nothing.
  uint64_t first_ns() const {
    uint64_t first_ns = UINT64_MAX;
    for (const Group& group : groups_) {
      if (counts(group)) first_ns = std::min(first_ns, group.first_ns);
    }
    return groups_.empty() ? 0 : first_ns;
  }
  uint64_t last_ns() const {
    uint64_t last_ns = 0;
    for (const Group& group : groups_) {
      if (counts(group)) last_ns = std::max(last_ns, group.last_ns);
    }
    return last_ns;
  }

 private:
  struct Group {
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
    uint64_t times = 0;
  };
  // Records of one recording follow each other within seconds, unless all that it watches sleeps.
  static constexpr uint64_t kMaxDistance_ns = uint64_t{7} * 24 * 3600 * kNsPerSecond;
  static constexpr size_t kMaxGroups = 16;
  // Another group is no damage if it has this part of the largest one's times, or some that are not
  // far from that: damaged times lie decades away.
  static constexpr uint64_t kLeastPart = 16;
  static constexpr uint64_t kYear_ns = uint64_t{365} * 24 * 3600 * kNsPerSecond;

  using Groups = std::vector<Group>;
  Groups::const_iterator smallest() const {
    return std::min_element(groups_.begin(), groups_.end(), has_fewer);
  }
  bool counts(const Group& group) const {
    const Group& most = *std::max_element(groups_.begin(), groups_.end(), has_fewer);
    if (group.times == most.times) return true;
    const bool is_near =
        group.first_ns <= most.last_ns + kYear_ns && most.first_ns <= group.last_ns + kYear_ns;
    return group.times > 1 && (is_near || group.times >= most.times / kLeastPart);
  }
  static bool has_fewer(const Group& a, const Group& b) { return a.times < b.times; }

  Groups groups_;
};

}  // namespace sentry_prof::formats
