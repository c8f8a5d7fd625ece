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
  // `follow` may be empty.
  explicit DeepThreads(FollowOuterStack follow) : follow_(std::move(follow)) {}

  // `stack_end`: as FollowOuterStack has it. It is told again if it is another one: there may be
  // several stacks.
  void on_cut(uint32_t pid, uint32_t tid, uint64_t stack_end) {
    if (!follow_) return;
    make_room();
    deep_pids_.insert(pid);
    const auto [place, is_new] = ends_.try_emplace(tid, stack_end);
    if (!is_new && (stack_end == 0 || stack_end == place->second)) return;
    place->second = stack_end;
    follow_(tid, stack_end);
  }
  void on_whole(uint32_t pid, uint32_t tid, uint64_t stack_end) {
    if (deep_pids_.contains(pid) && ends_.try_emplace(tid, stack_end).second) {
      follow_(tid, stack_end);
    }
  }
  void forget_thread(uint32_t tid) { ends_.erase(tid); }
  void forget_process(uint32_t pid) { deep_pids_.erase(pid); }

 private:
  static constexpr size_t kMaxThreads = 4096;  // the kernel keeps fewer

  void make_room() {
    if (ends_.size() < kMaxThreads && deep_pids_.size() < kMaxThreads) return;
    ends_.clear();
    deep_pids_.clear();
  }

  FollowOuterStack follow_;
  std::unordered_map<uint32_t, uint64_t> ends_;
  std::unordered_set<uint32_t> deep_pids_;
};

}  // namespace sentry_prof::recorder
