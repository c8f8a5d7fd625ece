// Threads whose stacks are larger than what a sample holds, and where these end. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>

namespace sentry_prof::recorder {

// sampling::Sampler::follow_outer_stack().
using FollowOuterStack = std::function<void(uint32_t pid, uint32_t tid, uint64_t stack_end)>;

// A process's threads are followed from its first stack that was cut on. Where each one's stack
// ends is told with its next whole one.
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
    const uint64_t since_ns = deep_since_ns_.try_emplace(pid, now_ns_()).first->second;
    tell(pid, tid, stack_end);
    return since_ns < time_ns;
  }
  // One was whole.
  void on_whole(uint32_t pid, uint32_t tid, uint64_t stack_end) {
    if (stack_end == 0 || !deep_since_ns_.contains(pid) || stack_ends_.contains(tid)) return;
    make_room();
    tell(pid, tid, stack_end);
  }
  void forget_thread(uint32_t tid) { stack_ends_.erase(tid); }
  void forget_process(uint32_t pid) { deep_since_ns_.erase(pid); }

 private:
  static constexpr size_t kMaxThreads = 4096;  // whose ends no record told

  // An end that is not known now is still where it was.
  void tell(uint32_t pid, uint32_t tid, uint64_t stack_end) {
    if (stack_end != 0) stack_ends_[tid] = stack_end;
    const auto known = stack_ends_.find(tid);
    follow_(pid, tid, known == stack_ends_.end() ? 0 : known->second);
  }

  void make_room() {
    if (std::max(stack_ends_.size(), deep_since_ns_.size()) < kMaxThreads) return;
    stack_ends_.clear();
    deep_since_ns_.clear();
  }

  FollowOuterStack follow_;
  std::function<uint64_t()> now_ns_;
  std::unordered_map<uint32_t, uint64_t> stack_ends_;     // by thread, the last one that was known
  std::unordered_map<uint32_t, uint64_t> deep_since_ns_;  // by process
};

}  // namespace sentry_prof::recorder
