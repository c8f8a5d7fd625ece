#include "recorder/live_stack.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace sentry_prof::recorder {

namespace {

// Nearly all stacks that are cut end within so much; where a stack of small frames does not, what
// is read becomes four times as long each time.
constexpr size_t kFirstPiece_bytes = 64u << 10;
constexpr size_t kGrowth = 4;
// Large frames (local arrays) leave gaps between the pieces. Each costs a walk from the leaf on.
constexpr size_t kMaxPieces = 8;
constexpr size_t kPage_bytes = 4096;
// Each reading is a turn of another thread (os::ProcessMemoryReader), some 10 us; copying a page is
// a tenth of that.
constexpr size_t kMaxWordDistance_bytes = 4 * kPage_bytes;
// Of 390,000 stacks of real programs that were the same before and after, with one in place, 9 were
// another in between; with none in place nearly half of 11,400 were (`scripts/bench joins`). Each
// more halves the chance for a program that is made to deceive.
constexpr size_t kMaxOuterWords = 4;
// Copying that much takes a CPU about 80 ms. Enough for stacks of 1 MiB at 101 Hz on five threads.
constexpr uint64_t kBytesPerSecond = 512u << 20;
// A walk of recursion takes about 50 ns a frame, as copying so much does.
constexpr uint64_t kBytesPerFrame = 320;

}  // namespace

bool LiveStack::begin(const CutCopy& copy, std::span<const unwind::WalkStep> steps) {
  copy_ = copy;
  size_bytes_ = 0;
  pieces_.clear();
  different_words_.clear();
  outer_words_.clear();
  unwind::DistinctValues pcs;
  const uint64_t outer_half = copy.end.value - copy.size_bytes / 2;
  // The step of the last frame has not found its word.
  for (size_t i = steps.size(); i-- > 1 && !pcs.is_full();) {
    const unwind::SeenWord& word = steps[i - 1].return_address;
    if (pcs.add(word.value)) different_words_.push_back(word);
    const bool is_outer = word.address >= outer_half && outer_words_.size() < kMaxOuterWords;
    if (is_outer) outer_words_.push_back(word);
  }
  place_words();
  return read_ != nullptr;
}

// Each look at them would be a turn of the reader's thread: they are read with each piece, behind
// it, so that they tell of it.
void LiveStack::place_words() {
  words_read_bytes_ = 0;
  words_size_bytes_ = 0;
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  for (const auto& words : {std::span(different_words_), std::span(outer_words_)}) {
    for (const unwind::SeenWord& word : words) {
      begin = std::min(begin, word.address);
      end = std::max(end, word.address + sizeof(uint64_t));
    }
  }
  if (begin >= end || end - begin > kMaxWordDistance_bytes) return;
  words_begin_ = {begin};
  words_size_bytes_ = static_cast<size_t>(end - begin);
  words_now_.resize(words_size_bytes_);
}

bool LiveStack::still_stands() {
  return different_words_.size() == unwind::kFramesInCommon && are_in_place(different_words_);
}

bool LiveStack::may_stand() { return are_in_place(outer_words_); }

// Words that are near to each other are read at once.
bool LiveStack::are_in_place(std::span<const unwind::SeenWord> words) {
  if (words_read_bytes_ > 0) {
    const unwind::StackSnapshot now(words_begin_, std::span(words_now_).first(words_read_bytes_));
    return std::ranges::all_of(words, [&](const auto& word) { return word.is_still_in(now); });
  }
  while (!words.empty()) {
    const uint64_t last = words[0].address;  // outermost first: mostly the highest
    const auto is_far = [last](const unwind::SeenWord& word) {
      return word.address > last || last - word.address > kMaxWordDistance_bytes;
    };
    const auto far = std::ranges::find_if(words, is_far);
    const auto near = words.first(static_cast<size_t>(far - words.begin()));
    if (!are_near_in_place(near)) return false;
    words = words.subspan(near.size());
  }
  return true;
}

// `words[0]` is the highest.
bool LiveStack::are_near_in_place(std::span<const unwind::SeenWord> words) {
  const uint64_t begin = std::ranges::min(words, {}, &unwind::SeenWord::address).address;
  near_words_now_.resize(static_cast<size_t>(words[0].address - begin) + sizeof(uint64_t));
  os::MemoryRange range{begin, near_words_now_};
  read_({copy_.pid, copy_.time_ns}, std::span(&range, 1));
  const unwind::StackSnapshot now({begin}, range.out.first(range.got_bytes));
  return std::ranges::all_of(words, [&](const auto& word) { return word.is_still_in(now); });
}

bool LiveStack::grow(RuntimeAddress missing) {
  const RuntimeAddress begin = begin_of_next(missing);
  const bool goes_on = !pieces_.empty() && pieces_.back().end() == begin.value;
  if (!goes_on && pieces_.size() == kMaxPieces) return false;
  const size_t old_bytes = goes_on ? pieces_.back().bytes.size() : 0;
  const size_t asked = std::min(goes_on ? (kGrowth - 1) * old_bytes : kFirstPiece_bytes,
                                kMaxLiveStack_bytes - size_bytes_);
  if (asked == 0 || !spend(asked)) return false;
  if (buffer_.size() < size_bytes_ + asked) {
    buffer_.resize(size_bytes_ + asked);
    place_pieces();
  }
  std::array<os::MemoryRange, 2> ranges{
      {{begin.value, std::span(buffer_).subspan(size_bytes_, asked)},
       {words_begin_.value, std::span(words_now_).first(words_size_bytes_)}}};
  const uint64_t time_ns =
      read_({copy_.pid, copy_.time_ns}, std::span(ranges).first(words_size_bytes_ > 0 ? 2 : 1));
  const size_t got = ranges[0].got_bytes;
  budget_bytes_ += asked - got;
  if (got == 0) return false;
  words_read_bytes_ = ranges[1].got_bytes;
  read_time_ns_ = time_ns;
  size_bytes_ += got;
  if (goes_on) pieces_.pop_back();
  pieces_.push_back({{begin.value - old_bytes}, std::span(buffer_).first(old_bytes + got)});
  place_pieces();
  return pieces_.back().has(missing, sizeof(uint64_t));
}

// Most frames are small: what is near is read through to. Registers are saved below the return
// address, perhaps on the page before.
RuntimeAddress LiveStack::begin_of_next(RuntimeAddress missing) const {
  const uint64_t end = pieces_.empty() ? copy_.end.value : pieces_.back().end();
  if (missing.value < end + kFirstPiece_bytes) return {end};
  return {std::max(end, (missing.value & ~uint64_t{kPage_bytes - 1}) - kPage_bytes)};
}

// The buffer may have moved.
void LiveStack::place_pieces() {
  size_t begin = 0;
  for (Piece& piece : pieces_) {
    piece.bytes = std::span(buffer_).subspan(begin, piece.bytes.size());
    begin += piece.bytes.size();
  }
}

void LiveStack::charge_walk(size_t frames) {
  budget_bytes_ -= std::min(budget_bytes_, frames * kBytesPerFrame);
}

bool LiveStack::spend(size_t bytes) {
  const uint64_t passed_ns = copy_.time_ns - std::min(copy_.time_ns, budget_time_ns_);
  const double refill = static_cast<double>(passed_ns) * 1e-9 * double{kBytesPerSecond};
  budget_time_ns_ = std::max(budget_time_ns_, copy_.time_ns);
  budget_bytes_ = static_cast<uint64_t>(
      std::min(static_cast<double>(budget_bytes_) + refill, double{kBytesPerSecond}));
  if (bytes > budget_bytes_) return false;
  budget_bytes_ -= bytes;
  return true;
}

}  // namespace sentry_prof::recorder
