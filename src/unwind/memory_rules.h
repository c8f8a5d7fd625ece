// The rules of code that no file holds.
#pragma once

#include "unwind/code_source.h"
#include "unwind/compact_rule.h"
#include "unwind/prologue.h"
#include "unwind/vain_searches.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace sentry_prof::unwind {

// Of a walk, beside kMaxWork, of which other searches need theirs: a quarter of that, for some 100
// to 200 functions. Where it is used up, frame pointers lead on.
inline constexpr uint32_t kMaxOwnWayWork = 1u << 17;

// What the code says is remembered for one walk, as recursion comes to the same pcs again; by the
// next walk it may be other code. 95 KiB, of which a walk touches what it uses.
class MemoryRules {
 public:
  // By runtime address; not owned; null: no code can be read.
  explicit MemoryRules(const CodeSource* code) : code_(code) {}

  const CodeSource* code() const { return code_; }
  void begin_walk() {
    ++walk_;
    own_way_work_left_ = kMaxOwnWayWork;
    vain_count_ = 0;
  }
  // The code is another one than the last walk found: what it looked for in vain, or not at all as
  // that was in vain lately, is looked for by the next one.
  void take_back_vain_searches();

  // Of the code at `pc`: rule_from_straight_code(); null if it cannot be read.
  const CompactRule* straight(uint64_t pc, uint32_t& work);
  // find_prologue() and rule_from_memory_code(), for a pc that straight() has just been asked for.
  // The first is not asked each time for a pc that had none near lately, as the interpreter has.
  Prologue prologue(RuntimeAddress code_begin, uint64_t pc, bool pc_is_exact, uint32_t& work);
  CompactRule whole(uint64_t pc, uint32_t& work);

  struct RuleRead {
    CompactRule rule;
    bool is_read = false;  // all that the rule took, or that no rule was found in
  };
  // whole(), for code that a frame pointer leads out of, if it may lead to a caller further in.
  // None where the code was lately seen not to, as most keeps the frame record.
  std::optional<RuleRead> own_way(uint64_t pc);
  void note_none_further_in(uint64_t pc) { none_further_in_.add(place_of(pc)); }

  // rule_past_jumps(), likewise; none where it has lately led nowhere.
  std::optional<RuleRead> past_jumps(uint64_t pc, uint32_t& work);
  // Whether what past_jumps() gave led to a caller.
  void note_past_jumps(uint64_t pc, bool is_way);

 private:
  struct Known {
    uint64_t walk = 0;
    uint64_t pc = 0;
    bool is_readable = false;
    CompactRule straight;
    std::optional<Prologue> prologue;
    std::optional<RuleRead> whole, past_jumps;
  };
  static constexpr unsigned kIndexBits = 8, kIndexShift = 64 - kIndexBits;

  Known& known(uint64_t pc, uint32_t& work);
  const RuleRead& known_whole(uint64_t pc, uint32_t& work);
  Prologue search_prologue(RuntimeAddress code_begin, uint64_t pc, bool pc_is_exact,
                           uint32_t& work);

  void note_vain(uint64_t key) {
    if (vain_count_ < vain_keys_.size()) vain_keys_[vain_count_++] = key;
  }

  uint64_t place_of(uint64_t pc) const { return pc ^ (code_->address_space() << 40); }

  const CodeSource* code_;
  uint64_t walk_ = 0;
  // Where there was none a compiler may put a function next.
  VainSearches without_prologue_{15};
  // 64 KiB: a walk may lead through hundreds of such functions.
  BasicVainSearches<12> none_further_in_{63};
  VainSearches none_past_jumps_{15};
  std::array<uint64_t, 16> vain_keys_{};  // that this walk found in both, or added, the first few
  size_t vain_count_ = 0;
  uint32_t own_way_work_left_ = 0;
  std::array<Known, size_t{1} << kIndexBits> known_{};  // each pc has one place
};

}  // namespace sentry_prof::unwind
