// Threads whose stacks are larger than what a sample holds, and where these end. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace sentry_prof::recorder {

// sampling::Sampler::follow_outer_stack().
using FollowOuterStack = std::function<void(uint32_t tid, uint64_t stack_end)>;

// A thread is followed from its first stack that was cut on; those of a process that had one, from
// their next whole stack on, before they are cut.
class DeepThreads {
 public:
  // `follow` may be empty. `now_ns`: CLOCK_MONOTONIC.
  DeepThreads(FollowOuterStack follow, std::function<uint64_t()> now_ns)
      : follow_(std::move(follow)), now_ns_(std::move(now_ns)) {}

  // A sample of that time was cut. `stack_end`: as FollowOuterStack has it; it is told each time,
  // as it may be another one, and of many threads the kernel forgets some. Returns whether the
  // thread was followed when the sample was taken.
  bool on_cut(uint32_t pid, uint32_t tid, uint64_t time_ns, uint64_t stack_end) {
    if (!follow_) return false;
    make_room();
    deep_pids_.insert(pid);
    tell(tid, stack_end);
    return followed_.at(tid).since_ns < time_ns;
  }
  // One was whole.
  void on_whole(uint32_t pid, uint32_t tid, uint64_t stack_end) {
    if (!deep_pids_.contains(pid)) return;
    const auto known = followed_.find(tid);
    const bool is_told =
        known != followed_.end() && (known->second.stack_end != 0 || stack_end == 0);
    if (is_told) return;
    make_room();
    tell(tid, stack_end);
  }
  void forget_thread(uint32_t tid) { followed_.erase(tid); }
  void forget_process(uint32_t pid) { deep_pids_.erase(pid); }

 private:
  static constexpr size_t kMaxThreads = 4096;  // whose ends no record told

  struct Followed {
    uint64_t since_ns = 0;
    uint64_t stack_end = 0;  // the last one that was known
  };

  // An end that is not known now is still where it was.
  void tell(uint32_t tid, uint64_t stack_end) {
    Followed& thread = followed_.try_emplace(tid, now_ns_(), 0).first->second;
    if (stack_end != 0) thread.stack_end = stack_end;
    follow_(tid, thread.stack_end);
  }

  void make_room() {
    if (followed_.size() < kMaxThreads && deep_pids_.size() < kMaxThreads) return;
    followed_.clear();
    deep_pids_.clear();
  }

  FollowOuterStack follow_;
  std::function<uint64_t()> now_ns_;
  std::unordered_map<uint32_t, Followed> followed_;
  std::unordered_set<uint32_t> deep_pids_;
};

}  // namespace sentry_prof::recorder
