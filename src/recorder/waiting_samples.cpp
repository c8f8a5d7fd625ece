#include "recorder/waiting_samples.h"

#include <utility>

namespace sentry_prof::recorder {

void WaitingSamples::add(WaitingSample sample) {
  size_bytes_ += sample.size_bytes();
  samples_.push_back(std::move(sample));
}

std::vector<WaitingSample> WaitingSamples::take_thread(uint32_t chunk_thread) {
  std::vector<WaitingSample> taken;
  std::erase_if(samples_, [&](WaitingSample& sample) {
    if (sample.chunk_thread != chunk_thread) return false;
    size_bytes_ -= sample.size_bytes();
    taken.push_back(std::move(sample));
    return true;
  });
  return taken;
}

std::vector<WaitingSample> WaitingSamples::take_overdue(uint64_t time_ns) {
  std::vector<WaitingSample> taken;
  while (!samples_.empty() &&
         (samples_.front().time_ns < time_ns || size_bytes_ > kMaxWaiting_bytes)) {
    size_bytes_ -= samples_.front().size_bytes();
    taken.push_back(std::move(samples_.front()));
    samples_.pop_front();
  }
  return taken;
}

}  // namespace sentry_prof::recorder
