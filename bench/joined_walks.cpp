// How often a stack that is joined with its thread's last or next whole walk is joined rightly:
// takes the samples of raw logs whose stacks are whole, cuts their copies to 2, 4, 8, 16 and 32
// KiB, joins them with the walk of 1, 4, 16, 64 and 256 samples before, and with the one as far
// after where that is not enough, and compares the outer frames. Then joins them with both, the one
// before and the one as far after, where these are the same outside of the copy.
//   joined_walks LOG...
// First a row for how many frames, with different pcs, both have in common where they are joined, a
// column for each age: joined, and how many of these wrongly; of the one before, the one after, and
// both. Then a row for how many return addresses are in place after the copy where it was joined
// with both by the places of these alone. Columns are separated by '|'.
#include "raw_log_samples.h"
#include "recorder/register_mapping.h"
#include "unwind/walk.h"

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

using namespace sentry_prof;
using namespace sentry_prof::bench;

namespace {

constexpr std::array<size_t, 5> kCopies_bytes = {2048, 4096, 8192, 16384, 32768};
constexpr std::array<size_t, 5> kAges_samples = {1, 4, 16, 64, 256};
// The least of each row.
constexpr std::array<size_t, 5> kFramesInCommon = {1, 2, 3, 4, unwind::kFramesInCommon};

struct WholeStack {
  uint64_t map_version = 0;
  uint64_t leaf_sp = 0;
  std::vector<unwind::WalkStep> steps;  // outermost first
};

struct Verdicts {
  uint64_t joined = 0;
  uint64_t wrong = 0;

  void add(const Verdicts& other) {
    joined += other.joined;
    wrong += other.wrong;
  }
  std::string text() const { return fmt::format("{} / {}", joined, wrong); }
};
using Row = std::array<Verdicts, kAges_samples.size()>;

// Of the return addresses at the end of a copy, how many are in place after it, one after the
// other.
constexpr size_t kMaxInPlace = 4;
constexpr size_t kNoneToSee = kMaxInPlace + 1;  // the leaf's caller is the copy's last frame

class JoinedWalks {
 public:
  void add(const std::vector<StoredSample>& samples) {
    unwind::Unwinder unwinder(recorder::native_arch());
    std::map<uint64_t, std::vector<WholeStack>> stacks;
    for (const StoredSample& sample : samples) {
      std::optional<WholeStack> stack = walk(unwinder, sample);
      if (!stack) continue;
      stacks[uint64_t{sample.pid} << 32 | sample.tid].push_back(std::move(*stack));
      ++stacks_;
    }
    for (const auto& [thread, of_thread] : stacks) {
      for (const size_t copy_bytes : kCopies_bytes) judge(of_thread, copy_bytes);
    }
  }

  void print_between() const {
    fmt::print("return addresses in place");
    for (const size_t age : kAges_samples) fmt::print(" | {} samples before and after", age);
    fmt::print(" | all\n");
    for (size_t i = 0; i <= kMaxInPlace; ++i) {
      print_row(fmt::format("{}{}", i, i == kMaxInPlace ? " or more" : ""), between_[i]);
    }
    print_row("there are none", between_[kNoneToSee]);
  }

  void print() const {
    print_joined("before", with_before_);
    fmt::print("\n");
    print_joined("after", with_after_);
    fmt::print("\n");
    print_joined("before and after", with_both_);
  }

 private:
  using Rows = std::array<Row, kFramesInCommon.size()>;

  void print_joined(std::string_view with, const Rows& rows) const {
    fmt::print("frames in common, {} whole stacks", stacks_);
    for (const size_t age : kAges_samples) fmt::print(" | {} samples {}", age, with);
    fmt::print(" | all\n");
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool is_last = i + 1 == rows.size();
      print_row(is_last ? fmt::format("{} or more", kFramesInCommon[i])
                        : range(kFramesInCommon[i], kFramesInCommon[i + 1] - 1),
                rows[i]);
    }
  }

  static std::string range(size_t first, size_t last) {
    return first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last);
  }

  static void print_row(const std::string& name, const Row& row) {
    Verdicts all;
    fmt::print("{}", name);
    for (const Verdicts& verdicts : row) {
      fmt::print(" | {}", verdicts.text());
      all.add(verdicts);
    }
    fmt::print(" | {}\n", all.text());
  }

  static std::optional<WholeStack> walk(unwind::Unwinder& unwinder, const StoredSample& sample) {
    unwind::WalkMemory memory;
    const unwind::Walk walk =
        unwinder.walk(sample.registers, sample.stack_snapshot(), *sample.modules, &memory);
    if (!walk.is_complete() || memory.steps().size() == unwind::kMaxRememberedSteps) return {};
    const unsigned sp = unwind::arch_registers(recorder::native_arch()).stack_pointer;
    return WholeStack{sample.modules->version(), sample.registers.get(sp), memory.steps()};
  }

  void judge(const std::vector<WholeStack>& stacks, size_t copy_bytes) {
    for (size_t age = 0; age < kAges_samples.size(); ++age) {
      for (size_t i = kAges_samples[age]; i < stacks.size(); ++i) {
        const WholeStack& before = stacks[i - kAges_samples[age]];
        const size_t common = judge(stacks[i], before, copy_bytes, with_before_, age);
        if (i + kAges_samples[age] >= stacks.size()) continue;
        const WholeStack& after = stacks[i + kAges_samples[age]];
        if (common < unwind::kFramesInCommon) {
          judge(stacks[i], after, copy_bytes, with_after_, age);
        }
        judge_both(before, stacks[i], after, copy_bytes, age);
        judge_between(before, stacks[i], after, copy_bytes, age);
      }
    }
  }

  // How many frames both have in common where they would be joined.
  static size_t judge(const WholeStack& now, const WholeStack& other, size_t copy_bytes, Rows& rows,
                      size_t age) {
    const std::optional<Meeting> met = meeting_of(now, other, copy_bytes);
    if (!met) return 0;
    const bool is_right = are_same_outside(now, met->last, other, met->place);
    rows[row_of(met->common)][age].add({1, is_right ? 0u : 1u});
    return met->common;
  }

  // Where both are the same outside of the copy; the row is that of the fewer frames in common.
  void judge_both(const WholeStack& before, const WholeStack& now, const WholeStack& after,
                  size_t copy_bytes, size_t age) {
    const std::optional<Meeting> first = meeting_of(now, before, copy_bytes);
    const std::optional<Meeting> second = meeting_of(now, after, copy_bytes);
    if (!first || !second || !are_same_outside(after, second->place, before, first->place)) return;
    const bool is_right = are_same_outside(now, first->last, before, first->place);
    with_both_[row_of(std::min(first->common, second->common))][age].add({1, is_right ? 0u : 1u});
  }

  // The last step of `now` in its copy, where the same stands in another walk, and how many frames
  // with different pcs these two have in common from there inward.
  struct Meeting {
    size_t last = 0;
    size_t place = 0;
    size_t common = 0;
  };
  static std::optional<Meeting> meeting_of(const WholeStack& now, const WholeStack& other,
                                           size_t copy_bytes) {
    const std::optional<size_t> last = last_in_copy(now, copy_bytes);
    if (!last || now.map_version != other.map_version) return std::nullopt;
    const auto same = std::find_if(
        other.steps.begin(), other.steps.end(),
        [&](const unwind::WalkStep& step) { return step.state == now.steps[*last].state; });
    if (same == other.steps.end()) return std::nullopt;
    const auto place = static_cast<size_t>(same - other.steps.begin());
    return Meeting{*last, place, frames_in_common(now, *last, other, place)};
  }

  static size_t row_of(size_t common) {
    size_t row = 0;
    while (row + 1 < kFramesInCommon.size() && kFramesInCommon[row + 1] <= common) ++row;
    return row;
  }

  // Believed is what is outside of the copy if it was the same before as it is after.
  void judge_between(const WholeStack& before, const WholeStack& now, const WholeStack& after,
                     size_t copy_bytes, size_t age) {
    const std::optional<size_t> last = last_in_copy(now, copy_bytes);
    const bool is_one_map =
        before.map_version == now.map_version && now.map_version == after.map_version;
    if (!last || !is_one_map) return;
    const uint64_t slot = now.steps[*last].return_address.address;
    const size_t outside_before = outside_of(before, slot);
    const size_t outside_after = outside_of(after, slot);
    if (outside_before == 0 || outside_before != outside_after) return;
    if (!are_same_outside(after, outside_after, before, outside_before)) return;
    const bool has_none = *last + 1 == now.steps.size();
    const size_t in_place =
        has_none ? kNoneToSee : std::min(words_in_place(now, *last, after), kMaxInPlace);
    between_[in_place][age].add(
        {1, are_same_outside(now, *last, before, outside_before) ? 0u : 1u});
  }

  // How many of the last return addresses of the copy, one after the other.
  static size_t words_in_place(const WholeStack& now, size_t last, const WholeStack& after) {
    size_t count = 0;
    for (size_t i = last + 1; i < now.steps.size(); ++i, ++count) {
      const unwind::SeenWord& word = now.steps[i].return_address;
      const auto same = std::find_if(after.steps.begin(), after.steps.end(), [&](const auto& step) {
        return step.return_address.address == word.address &&
               step.return_address.value == word.value;
      });
      if (same == after.steps.end()) break;
    }
    return count;
  }

  // How many steps are outside of the one whose return address is at `slot`.
  static size_t outside_of(const WholeStack& stack, uint64_t slot) {
    const auto found = std::find_if(stack.steps.begin(), stack.steps.end(), [&](const auto& step) {
      return step.return_address.address == slot;
    });
    return found == stack.steps.end() ? 0 : static_cast<size_t>(found - stack.steps.begin());
  }

  // The outermost step that a walk over a copy comes to; none if it comes to the root.
  static std::optional<size_t> last_in_copy(const WholeStack& stack, size_t copy_bytes) {
    const uint64_t end = stack.leaf_sp + copy_bytes;
    for (size_t i = stack.steps.size(); i-- > 0;) {
      const unwind::WalkStep& step = stack.steps[i];
      if (std::max(step.return_address.address, step.saved_fp.address) + 8 > end) return i;
    }
    return std::nullopt;
  }

  // With different pcs.
  static size_t frames_in_common(const WholeStack& now, size_t last, const WholeStack& other,
                                 size_t place) {
    unwind::DistinctValues pcs;
    size_t distinct = 0;
    for (size_t i = 0; last + i < now.steps.size() && place + i < other.steps.size(); ++i) {
      const unwind::FrameState& state = now.steps[last + i].state;
      if (other.steps[place + i].state != state || pcs.is_full()) break;
      distinct += pcs.add(state.pc) ? 1 : 0;
    }
    return distinct;
  }

  static bool are_same_outside(const WholeStack& now, size_t last, const WholeStack& before,
                               size_t place) {
    const auto at = [](const WholeStack& stack, size_t step) {
      return stack.steps.begin() + static_cast<std::ptrdiff_t>(step);
    };
    return std::equal(now.steps.begin(), at(now, last), before.steps.begin(), at(before, place),
                      [](const unwind::WalkStep& one, const unwind::WalkStep& other) {
                        return one.state.pc == other.state.pc;
                      });
  }

  size_t stacks_ = 0;
  Rows with_before_{};
  Rows with_after_{};
  Rows with_both_{};
  std::array<Row, kNoneToSee + 1> between_{};
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("usage: joined_walks LOG...");
  JoinedWalks walks;
  for (int i = 1; i < argc; ++i) walks.add(RawLogSamples(argv[i]).samples());
  walks.print();
  fmt::print("\n");
  walks.print_between();
  return 0;
} catch (const std::exception& problem) {
  fmt::print(stderr, "joined_walks: {}\n", problem.what());
  return 1;
}
