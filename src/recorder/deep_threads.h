// Threads whose stacks are larger than what a sample holds, and where these end. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>

namespace sentry_prof::recorder {

// sampling::Sampler::follow_outer_stack().
using FollowOuterStack = std::function<void(uint32_t tid, uint64_t stack_end)>;

class DeepThreads {
 public:
  // `follow` may be empty.
  explicit DeepThreads(FollowOuterStack follow) : follow_(std::move(follow)) {}

  // A stack of this thread was cut. `stack_end`: as FollowOuterStack has it; told again if it is
  // known better.
  void note(uint32_t tid, uint64_t stack_end) {
    if (!follow_) return;
    if (ends_.size() >= kMaxThreads) ends_.clear();
    const auto [place, is_new] = ends_.try_emplace(tid, stack_end);
    if (!is_new && (stack_end == 0 || stack_end == place->second)) return;
    place->second = stack_end;
    follow_(tid, stack_end);
  }
  void forget(uint32_t tid) { ends_.erase(tid); }

 private:
  static constexpr size_t kMaxThreads = 4096;  // the kernel keeps fewer

  FollowOuterStack follow_;
  std::unordered_map<uint32_t, uint64_t> ends_;
};

}  // namespace sentry_prof::recorder
