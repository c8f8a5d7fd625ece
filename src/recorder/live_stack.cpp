#include "recorder/live_stack.h"

#include <algorithm>
#include <utility>

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
// Copying that much takes a CPU about 80 ms. Five stacks of 1 MiB, as often as the rings are looked
// at while copies are cut (PollPace::kDeepInterval_ns).
constexpr uint64_t kBytesPerSecond = 512u << 20;
// A walk of recursion takes about 50 ns a frame, as copying so much does.
constexpr uint64_t kBytesPerFrame = 320;

}  // namespace

bool LiveStack::begin(const CutCopy& copy, std::span<const unwind::WalkStep> steps) {
  copy_ = copy;
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
  reading_ = &readings_.of(copy.thread);
  is_served_ = is_served_by(*reading_);
  is_own_ = false;
  show_pieces();
  return read_ != nullptr;
}

// Each look at them would be a turn of the reader's thread: those that are near to the outermost
// are read with each piece, behind it, so that they tell of it.
void LiveStack::place_words() {
  const auto for_each_word = [&](auto&& use) {
    for (const unwind::SeenWord& word : different_words_) use(word.address);
    for (const unwind::SeenWord& word : outer_words_) use(word.address);
  };
  uint64_t last = 0;
  for_each_word([&](uint64_t address) { last = std::max(last, address); });
  uint64_t begin = last;
  for_each_word([&](uint64_t address) {
    if (last - address <= kMaxWordDistance_bytes) begin = std::min(begin, address);
  });
  words_ = {{begin}, last == 0 ? 0 : static_cast<size_t>(last - begin) + sizeof(uint64_t)};
}

bool LiveStack::still_stands() {
  return different_words_.size() == unwind::kFramesInCommon && are_in_place(different_words_);
}

bool LiveStack::may_stand() { return are_in_place(outer_words_); }

// What lies outside of a frame says nothing if it is not known that the frame stood then.
bool LiveStack::is_served_by(const StackReading& reading) const {
  const auto has = [&](const unwind::SeenWord& word) {
    const RuntimeAddress address{word.address};
    return reading.has_behind(address) || reading.has_in_piece(address);
  };
  const auto& words = outer_words_.empty() ? different_words_ : outer_words_;
  return !reading.pieces().empty() && reading.pieces().front().begin.value <= copy_.end.value &&
         !words.empty() && std::ranges::all_of(words, has);
}

// Of a shallower stack than the one that was read first the words are among the pieces. They were
// read before what lies outside of them, and have to be the same behind it, too.
bool LiveStack::are_in_place(std::span<const unwind::SeenWord> words) {
  const unwind::StackSnapshot pieces({}, {}, unwind::StackSnapshot::Behind::Unknown,
                                     reading_->pieces());
  bool are_behind = true;
  for (const unwind::SeenWord& word : words) {
    const bool is_behind = reading_->has_behind({word.address});
    const bool is_known = is_behind || reading_->has_in_piece({word.address});
    if (is_known && !word.is_still_in(is_behind ? reading_->behind() : pieces)) return false;
    are_behind = are_behind && is_behind;
  }
  return are_behind || are_in_place_now(words);
}

// Words that are near to each other are read at once.
bool LiveStack::are_in_place_now(std::span<const unwind::SeenWord> words) {
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
  read_(request(), std::span(&range, 1));
  const unwind::StackSnapshot now({begin}, range.out.first(range.got_bytes));
  return std::ranges::all_of(words, [&](const auto& word) { return word.is_still_in(now); });
}

bool LiveStack::grow(RuntimeAddress missing) {
  refill_budget();
  const auto has = [&](const auto& piece) { return piece.has(missing, sizeof(uint64_t)); };
  if (std::ranges::any_of(pieces_, has)) return budget_bytes_ > 0;
  if (is_served_) {
    // This copy's return addresses were not read behind what another sample needed: a walk without
    // pieces says what this one needs.
    is_served_ = false;
    show_pieces();
    return budget_bytes_ > 0;
  }
  const StackRange piece = next_piece(missing);
  if (piece.size_bytes == 0 || piece.size_bytes > budget_bytes_) return false;
  if (!std::exchange(is_own_, true)) reading_->restart(copy_.thread);
  budget_bytes_ -= reading_->read_piece(read_, request(), piece, words_);
  show_pieces();
  return std::ranges::any_of(pieces_, has);
}

// Most frames are small: what is near is read through to. Registers are saved below the return
// address, perhaps on the page before. Empty if there are too many pieces, or too large ones.
StackRange LiveStack::next_piece(RuntimeAddress missing) const {
  const uint64_t end = pieces_.empty() ? copy_.end.value : pieces_.back().end();
  const bool is_near = missing.value < end + kFirstPiece_bytes;
  const uint64_t page_before = (missing.value & ~uint64_t{kPage_bytes - 1}) - kPage_bytes;
  const uint64_t begin = is_near ? end : std::max(end, page_before);
  const bool goes_on = begin == end && !pieces_.empty();
  if (!goes_on && pieces_.size() == kMaxPieces) return {};
  const size_t wanted = goes_on ? (kGrowth - 1) * pieces_.back().bytes.size() : kFirstPiece_bytes;
  // What was read for another sample gives way.
  const size_t kept_bytes = is_own_ ? reading_->size_bytes() : 0;
  return {{begin}, std::min(wanted, kMaxLiveStack_bytes - kept_bytes)};
}

// Those of samples with more on the stack may lie within the copy.
void LiveStack::show_pieces() {
  const auto all = is_served_ || is_own_ ? reading_->pieces() : std::span<const Piece>();
  const auto first =
      std::ranges::find_if(all, [&](const Piece& piece) { return is_beyond(piece); });
  pieces_ = all.subspan(static_cast<size_t>(first - all.begin()));
}

bool LiveStack::goes_on() const {
  return std::ranges::any_of(reading_->pieces(),
                             [&](const Piece& piece) { return is_beyond(piece); });
}

void LiveStack::end_batch() { readings_.end_batch(); }

void LiveStack::charge_walk(size_t frames) {
  budget_bytes_ -= std::min(budget_bytes_, frames * kBytesPerFrame);
}

void LiveStack::refill_budget() {
  const uint64_t passed_ns = copy_.time_ns - std::min(copy_.time_ns, budget_time_ns_);
  const double refill = static_cast<double>(passed_ns) * 1e-9 * double{kBytesPerSecond};
  budget_time_ns_ = std::max(budget_time_ns_, copy_.time_ns);
  budget_bytes_ = static_cast<uint64_t>(
      std::min(static_cast<double>(budget_bytes_) + refill, double{kBytesPerSecond}));
}

}  // namespace sentry_prof::recorder
