#include "recorder/live_stack.h"

#include <algorithm>
#include <cstring>

namespace sentry_prof::recorder {

namespace {

// Nearly all stacks that are cut end within the first piece; each further one is four times as
// long.
constexpr size_t kFirstPiece_bytes = 64u << 10;
constexpr size_t kGrowth = 4;
// Copying that much takes a CPU about 80 ms. Enough for stacks of 1 MiB at 101 Hz on five threads.
constexpr uint64_t kBytesPerSecond = 512u << 20;

}  // namespace

bool LiveStack::begin(const MemoryRequest& above_copy, const unwind::Walk& cut_walk) {
  above_copy_ = above_copy;
  size_bytes_ = 0;
  is_at_end_ = false;
  last_word_count_ = 0;
  // The step of the last frame has not found its word.
  const std::span<const unwind::WalkStep> steps = cut_walk.steps;
  for (size_t i = steps.size(); i-- > 1 && last_word_count_ < last_words_.size();) {
    last_words_[last_word_count_++] = steps[i - 1].return_address;
  }
  return read_ != nullptr;
}

bool LiveStack::still_stands() {
  return last_word_count_ == last_words_.size() &&
         std::ranges::all_of(last_words_, [&](const unwind::SeenWord& word) {
           MemoryRequest request = above_copy_;
           request.address = {word.address};
           uint64_t now = 0;
           const auto bytes = std::as_writable_bytes(std::span(&now, 1));
           return read_(request, bytes).size_bytes == sizeof(now) && now == word.value;
         });
}

bool LiveStack::grow() {
  const size_t wanted =
      size_bytes_ == 0 ? kFirstPiece_bytes : std::min(kGrowth * size_bytes_, kMaxLiveStack_bytes);
  if (is_at_end_ || wanted <= size_bytes_ || !spend(wanted - size_bytes_)) return false;
  if (buffer_.size() < wanted) buffer_.resize(wanted);
  MemoryRequest request = above_copy_;
  request.address.value += size_bytes_;
  const size_t asked = wanted - size_bytes_;
  const auto [got, time_ns] = read_(request, std::span(buffer_).subspan(size_bytes_, asked));
  read_time_ns_ = time_ns;
  is_at_end_ = got < asked;
  budget_bytes_ += asked - got;
  size_bytes_ += got;
  return got > 0;
}

bool LiveStack::spend(size_t bytes) {
  const uint64_t passed_ns =
      above_copy_.sample_time_ns - std::min(above_copy_.sample_time_ns, budget_time_ns_);
  const double refill = static_cast<double>(passed_ns) * 1e-9 * double{kBytesPerSecond};
  budget_time_ns_ = std::max(budget_time_ns_, above_copy_.sample_time_ns);
  budget_bytes_ = static_cast<uint64_t>(
      std::min(static_cast<double>(budget_bytes_) + refill, double{kBytesPerSecond}));
  if (bytes > budget_bytes_) return false;
  budget_bytes_ -= bytes;
  return true;
}

}  // namespace sentry_prof::recorder
