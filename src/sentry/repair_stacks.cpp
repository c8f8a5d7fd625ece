#include "sentry/repair_stacks.h"

#include "sentry/text_table.h"

#include <algorithm>
#include <charconv>

namespace sentry_prof::sentry {

namespace {

constexpr uint32_t kGone = UINT32_MAX;

// What the tables take for each stack and frame. Millions of "[]," or "{}," are nothing that
// anybody wrote to be read, and would take many times the text's size.
constexpr size_t kTables_bytes = 32;
constexpr size_t kFree_bytes = 16 * 1024 * 1024;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Calls `see` with each number of a stack and the text in front of it; returns the text behind the
// last one.
template <typename See>
std::string_view for_each_index(std::string_view stack, See see) {
  for (;;) {
    const auto digit = std::find_if(stack.begin(), stack.end(), is_digit);
    if (digit == stack.end()) return stack;
    const auto in_front = static_cast<size_t>(digit - stack.begin());
    uint32_t index = 0;
    const char* const end = stack.data() + stack.size();
    const char* const behind = std::from_chars(stack.data() + in_front, end, index).ptr;
    see(stack.substr(0, in_front), index);
    stack = {behind, static_cast<size_t>(end - behind)};
  }
}

class StackChoice {
 public:
  StackChoice(const ProfileFacts& facts, std::string_view text, const ListPlaces& places,
              ChangeList& changes)
      : facts_(facts), text_(text), places_(places), changes_(changes) {}

  StacksAndFrames run() {
    if (is_too_dense() || !find_used_stacks()) return {};
    result_.stacks.spans = element_spans(text_, *places_.stacks);
    if (frames_can_change()) choose_frames();
    choose_stacks();
    return std::move(result_);
  }

 private:
  bool is_too_dense() const {
    return (facts_.stacks.size() + facts_.frame_count) * kTables_bytes > text_.size() + kFree_bytes;
  }
  bool find_used_stacks();
  bool frames_can_change() const;
  void choose_frames();
  void merge_frames();
  void choose_stacks();
  static void note_change(Renumbering& list);

  const ProfileFacts& facts_;
  std::string_view text_;
  const ListPlaces& places_;
  ChangeList& changes_;
  std::vector<bool> is_used_;  // by stack
  StacksAndFrames result_;
};

// False if a sample has a stack that does not exist. The empty stack is what writers keep for
// idleness, whether a sample is idle or not.
bool StackChoice::find_used_stacks() {
  for (const StackFact& stack : facts_.stacks) is_used_.push_back(stack.is_empty);
  for (const SampleFact& sample : facts_.samples) {
    if (sample.stack >= is_used_.size()) return false;
    is_used_[sample.stack] = true;
  }
  return true;
}

bool StackChoice::frames_can_change() const {
  for (size_t i = 0; i < is_used_.size(); ++i) {
    if (is_used_[i] && facts_.stacks[i].has_missing_frame) return false;
  }
  return true;
}

// Numbers become those of the first equal frame.
void StackChoice::merge_frames() {
  Renumbering& frames = result_.frames;
  TextTable texts;
  std::vector<uint32_t> first;  // by number in `texts`
  frames.numbers.reserve(frames.spans.size());
  for (uint32_t i = 0; i < frames.spans.size(); ++i) {
    const uint32_t text = texts.index_of(frames.spans[i].of(text_));
    if (text == first.size()) first.push_back(i);
    frames.numbers.push_back(first[text]);
  }
}

void StackChoice::choose_frames() {
  Renumbering& frames = result_.frames;
  frames.spans = element_spans(text_, *places_.frames);
  merge_frames();
  std::vector<bool> is_used(frames.spans.size());
  std::vector<bool> is_named(frames.spans.size());
  for (size_t i = 0; i < is_used_.size(); ++i) {
    if (!is_used_[i]) continue;
    for_each_index(result_.stacks.spans[i].of(text_), [&](std::string_view, uint32_t frame) {
      is_named[frame] = true;
      is_used[frames.numbers[frame]] = true;
    });
  }
  uint64_t merged = 0;
  uint64_t unused = 0;
  for (uint32_t i = 0; i < frames.spans.size(); ++i) {
    const uint32_t first = frames.numbers[i];
    if (first == i && is_used[i]) {
      frames.numbers[i] = static_cast<uint32_t>(frames.chosen.size());
      frames.chosen.push_back(i);
    } else {
      ++(is_named[i] ? merged : unused);
      frames.numbers[i] = first == i ? kGone : frames.numbers[first];
    }
  }
  changes_.add(Change::FrameTwice, merged);
  changes_.add(Change::FrameUnused, unused);
  note_change(frames);
}

void StackChoice::choose_stacks() {
  Renumbering& stacks = result_.stacks;
  std::string arena;  // numbers never get longer: it need not grow
  arena.reserve(places_.stacks->end - places_.stacks->begin);
  TextTable texts;
  uint64_t merged = 0;
  uint64_t unused = 0;
  stacks.numbers.assign(stacks.spans.size(), kGone);
  for (uint32_t i = 0; i < stacks.spans.size(); ++i) {
    if (!is_used_[i]) {
      ++unused;
      continue;
    }
    std::string_view stack = stacks.spans[i].of(text_);
    if (result_.frames.is_changed) {
      const size_t begin = arena.size();
      append_renumbered(arena, stack, result_.frames.numbers);
      stack = std::string_view(arena).substr(begin);
    }
    stacks.numbers[i] = texts.index_of(stack);
    if (stacks.numbers[i] == stacks.chosen.size()) {
      stacks.chosen.push_back(i);
    } else {
      ++merged;
    }
  }
  changes_.add(Change::StackTwice, merged);
  changes_.add(Change::StackUnused, unused);
  note_change(stacks);
}

void StackChoice::note_change(Renumbering& list) {
  list.is_changed = list.chosen.size() != list.spans.size();
  if (!list.is_changed) list = {};
}

}  // namespace

void append_renumbered(std::string& out, std::string_view stack,
                       const std::vector<uint32_t>& numbers) {
  out += for_each_index(stack, [&](std::string_view in_front, uint32_t frame) {
    out += in_front;
    char digits[10];
    const char* const end = std::to_chars(digits, digits + sizeof digits, numbers[frame]).ptr;
    out.append(digits, static_cast<size_t>(end - digits));
  });
}

StacksAndFrames choose_stacks(const ProfileFacts& facts, std::string_view text,
                              const ListPlaces& places, ChangeList& changes) {
  return StackChoice(facts, text, places, changes).run();
}

}  // namespace sentry_prof::sentry
