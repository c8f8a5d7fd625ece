// How long to wait before the rings are looked into again. Pure.
#pragma once

#include <cstdint>

namespace sentry_prof::recorder {

// The rings are sized for a quarter of a second of samples, as far as the memory limits allow;
// their watermark wakes us earlier should they fill faster than in this time.
inline constexpr uint64_t kPollInterval_ns = 100'000'000;

class PollPace {
 public:
  // While most stacks are deeper than their copies the rest is read from the process, as long as it
  // is there: of one that ends soon after, only if that is done sooner.
  static constexpr uint64_t kDeepInterval_ns = 10'000'000;
  static constexpr uint64_t kDeepPhase_ns = 150'000'000;
  static_assert(kDeepPhase_ns > kPollInterval_ns);

  // At first, too: what deep stacks looked like before is what later ones are held against, and a
  // BPF program follows them as soon as one was seen. Many programs have begun with their work by
  // then (POV-Ray reads its scene for 0.2 s). It takes some 40 wake-ups more, of 25 us.
  static constexpr uint64_t kFirstPhase_ns = 500'000'000;

  explicit PollPace(uint64_t begin_ns) : deep_until_ns_(begin_ns + kFirstPhase_ns) {}

  uint64_t interval_ns() const { return interval_ns_; }

  // Both counted since the recording began.
  void on_drained(uint64_t now_ns, uint64_t samples, uint64_t cut_copies) {
    const bool are_mostly_cut = 2 * (cut_copies - cut_copies_) > samples - samples_;
    samples_ = samples;
    cut_copies_ = cut_copies;
    if (are_mostly_cut) deep_until_ns_ = now_ns + kDeepPhase_ns;
    interval_ns_ = now_ns < deep_until_ns_ ? kDeepInterval_ns : kPollInterval_ns;
  }

 private:
  uint64_t deep_until_ns_;
  uint64_t interval_ns_ = kDeepInterval_ns;
  uint64_t samples_ = 0;
  uint64_t cut_copies_ = 0;
};

}  // namespace sentry_prof::recorder
