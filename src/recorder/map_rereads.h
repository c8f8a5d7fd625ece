// When a process's maps are worth to be read again while it is recorded. Pure.
#pragma once

#include "base/time_units.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace sentry_prof::recorder {

// Times are those of the samples that lead to it.
class MapRereads {
 public:
  static constexpr size_t kMaxProcesses = 4096;
  // After one second, then two, four ...
  static constexpr uint64_t kFirst_ns = kNsPerSecond;

  // Records, perhaps of mappings, were lost.
  void on_records_lost(uint64_t time_ns) { last_loss_ns_ = time_ns; }
  // Another program runs there now, or none.
  void forget(uint32_t pid) { rereads_.erase(pid); }

  // Whether what is known since `known_at_ns` may lack what was lost: the mapping of a library that
  // took another one's place, whose names its functions would have. Not within a second, as losses
  // go on where a machine is overloaded.
  bool may_be_stale(uint32_t pid, uint64_t known_at_ns, uint64_t time_ns) const {
    if (known_at_ns >= last_loss_ns_) return false;
    const auto reread = rereads_.find(pid);
    return reread == rereads_.end() || time_ns >= reread->second.last_ns + kFirst_ns;
  }

  // Whether they are to be read now, as which it counts. Not more often than a garbage pc deserves:
  // the first time at once, and where records were lost since, then after ever longer times.
  bool begin(uint32_t pid, uint64_t time_ns) {
    if (rereads_.size() > kMaxProcesses) rereads_.clear();
    Reread& reread = rereads_[pid];
    if (time_ns < reread.not_before_ns && reread.last_ns >= last_loss_ns_) return false;
    reread.last_ns = time_ns;
    reread.back_off_ns = std::max(kFirst_ns, 2 * reread.back_off_ns);
    reread.not_before_ns = time_ns + reread.back_off_ns;
    return true;
  }

 private:
  struct Reread {
    uint64_t last_ns = 0;
    uint64_t not_before_ns = 0;
    uint64_t back_off_ns = 0;
  };

  std::unordered_map<uint32_t, Reread> rereads_;  // by pid
  uint64_t last_loss_ns_ = 0;
};

}  // namespace sentry_prof::recorder
