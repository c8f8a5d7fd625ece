#include "recorder/live_stack.h"

#include <algorithm>
#include <cstring>

namespace sentry_prof::recorder {

namespace {

// Nearly all stacks that are cut end within so much; where a stack of small frames does not, what
// is read becomes four times as long each time.
constexpr size_t kFirstPiece_bytes = 64u << 10;
constexpr size_t kGrowth = 4;
// Large frames (local arrays) leave gaps between the pieces. Each costs a walk from the leaf on.
constexpr size_t kMaxPieces = 32;
constexpr size_t kPage_bytes = 4096;
// Copying that much takes a CPU about 80 ms. Enough for stacks of 1 MiB at 101 Hz on five threads.
constexpr uint64_t kBytesPerSecond = 512u << 20;

}  // namespace

bool LiveStack::begin(const MemoryRequest& above_copy, const unwind::Walk& cut_walk) {
  above_copy_ = above_copy;
  size_bytes_ = 0;
  pieces_.clear();
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

bool LiveStack::grow(RuntimeAddress missing) {
  const RuntimeAddress begin = begin_of_next(missing);
  const bool goes_on = !pieces_.empty() && pieces_.back().end() == begin.value;
  if (!goes_on && pieces_.size() == kMaxPieces) return false;
  const size_t old_bytes = goes_on ? pieces_.back().bytes.size() : 0;
  const size_t asked = std::min(goes_on ? (kGrowth - 1) * old_bytes : kFirstPiece_bytes,
                                kMaxLiveStack_bytes - size_bytes_);
  if (asked == 0 || !spend(asked)) return false;
  if (buffer_.size() < size_bytes_ + asked) buffer_.resize(size_bytes_ + asked);
  MemoryRequest request = above_copy_;
  request.address = begin;
  const auto [got, time_ns] = read_(request, std::span(buffer_).subspan(size_bytes_, asked));
  read_time_ns_ = time_ns;
  budget_bytes_ += asked - got;
  if (got == 0) return false;
  size_bytes_ += got;
  if (goes_on) pieces_.pop_back();
  pieces_.push_back({{begin.value - old_bytes}, std::span(buffer_).first(old_bytes + got)});
  place_pieces();
  return pieces_.back().has(missing, sizeof(uint64_t));
}

// Most frames are small: what is near is read through to.
RuntimeAddress LiveStack::begin_of_next(RuntimeAddress missing) const {
  const uint64_t end = pieces_.empty() ? above_copy_.address.value : pieces_.back().end();
  if (missing.value < end + kFirstPiece_bytes) return {end};
  return {missing.value & ~uint64_t{kPage_bytes - 1}};
}

// The buffer may have moved.
void LiveStack::place_pieces() {
  size_t begin = 0;
  for (Piece& piece : pieces_) {
    piece.bytes = std::span(buffer_).subspan(begin, piece.bytes.size());
    begin += piece.bytes.size();
  }
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
