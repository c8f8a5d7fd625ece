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
  // After one second, then two, four ... and at last each minute: what can be known by then (a file
  // whose server answers again, code that mremap(2) has moved) is known soon enough.
  static constexpr uint64_t kFirst_ns = kNsPerSecond;
  static constexpr uint64_t kLast_ns = 64 * kNsPerSecond;

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

  // Whether they are to be read now, as which it counts. The first time at once; where records were
  // lost since, after a second: reading them takes up to tens of ms, in which more gets lost. Else
  // not more often than a garbage pc deserves, after ever longer times.
  bool begin(uint32_t pid, uint64_t time_ns) {
    if (rereads_.size() > kMaxProcesses) rereads_.clear();
    const auto [found, is_first] = rereads_.try_emplace(pid);
    Reread& reread = found->second;
    const bool is_for_loss = reread.last_ns < last_loss_ns_;
    const uint64_t wait_ns = is_for_loss ? kFirst_ns : reread.back_off_ns;
    if (!is_first && time_ns < reread.last_ns + wait_ns) return false;
    reread.last_ns = time_ns;
    reread.back_off_ns =
        is_first || is_for_loss ? kFirst_ns : std::min(2 * reread.back_off_ns, kLast_ns);
    return true;
  }

 private:
  struct Reread {
    uint64_t last_ns = 0;
    uint64_t back_off_ns = 0;
  };

  std::unordered_map<uint32_t, Reread> rereads_;  // by pid
  uint64_t last_loss_ns_ = 0;
};

}  // namespace sentry_prof::recorder
