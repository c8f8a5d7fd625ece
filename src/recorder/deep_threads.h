// Threads whose stacks are larger than what a sample holds, and where these end. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

  // `stack_end`: as FollowOuterStack has it. Told each time: it may be another one, and of many
  // threads the kernel forgets some. Whether the thread was followed before.
  bool on_cut(uint32_t pid, uint32_t tid, uint64_t stack_end) {
    if (!follow_) return false;
    make_room();
    deep_pids_.insert(pid);
    const bool is_new = followed_.insert(tid).second;
    follow_(tid, stack_end);
    return !is_new;
  }
  void on_whole(uint32_t pid, uint32_t tid, uint64_t stack_end) {
    if (!deep_pids_.contains(pid)) return;
    make_room();
    if (followed_.insert(tid).second) follow_(tid, stack_end);
  }
  void forget_thread(uint32_t tid) { followed_.erase(tid); }
  void forget_process(uint32_t pid) { deep_pids_.erase(pid); }

 private:
  static constexpr size_t kMaxThreads = 4096;  // whose ends no record told

  void make_room() {
    if (followed_.size() < kMaxThreads && deep_pids_.size() < kMaxThreads) return;
    followed_.clear();
    deep_pids_.clear();
  }

  FollowOuterStack follow_;
  std::unordered_set<uint32_t> followed_;
  std::unordered_set<uint32_t> deep_pids_;
};

}  // namespace sentry_prof::recorder
