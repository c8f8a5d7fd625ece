#include "unwind/memory_rules.h"

#include "base/hash.h"
#include "unwind/rule_cache.h"
#include "unwind/rule_from_code.h"

#include <algorithm>

namespace sentry_prof::unwind {
namespace {

// Notes whether there was a byte that could not be read.
class NotingSource final : public CodeSource {
 public:
  explicit NotingSource(const CodeSource& code) : code_(code) {}
  bool read_code(LinkAddress begin, std::span<std::byte> out) const override {
    const bool is_read = code_.read_code(begin, out);
    has_failed_ = has_failed_ || (!is_read && out.size() == 1);  // CodeWindow comes down to that
    return is_read;
  }
  bool has_failed() const { return has_failed_; }

 private:
  const CodeSource& code_;
  mutable bool has_failed_ = false;
};

}  // namespace

const CompactRule* MemoryRules::straight(uint64_t pc, uint32_t& work) {
  if (code_ == nullptr) return nullptr;
  const Known& of_pc = known(pc, work);
  return of_pc.is_readable ? &of_pc.straight : nullptr;
}

Prologue MemoryRules::prologue(RuntimeAddress code_begin, uint64_t pc, bool pc_is_exact,
                               uint32_t& work) {
  // Only return addresses come again and again in one walk.
  if (pc_is_exact) return search_prologue(code_begin, pc, true, work);
  Known& of_pc = known(pc, work);
  if (!of_pc.prologue) of_pc.prologue = search_prologue(code_begin, pc, false, work);
  return *of_pc.prologue;
}

Prologue MemoryRules::search_prologue(RuntimeAddress code_begin, uint64_t pc, bool pc_is_exact,
                                      uint32_t& work) {
  const uint64_t key = pc_is_exact ? place_of(pc) | RuleCache::kExactPc : place_of(pc);
  if (!without_prologue_.is_due(key)) {
    note_vain(key);
    return {.kind = Prologue::Kind::NoneNear};
  }
  const Prologue found = find_prologue(*code_, {code_begin.value}, {pc}, pc_is_exact, work);
  if (found.kind == Prologue::Kind::NoneNear) {
    without_prologue_.add(key);
    note_vain(key);
  } else if (found.kind != Prologue::Kind::Unread) {
    without_prologue_.clear(key);
  }
  return found;
}

void MemoryRules::take_back_vain_searches() {
  for (const uint64_t key : std::span(vain_keys_).first(vain_count_)) {
    without_prologue_.make_due(key);
    none_past_jumps_.make_due(key);
  }
}

const MemoryRules::RuleRead& MemoryRules::known_whole(uint64_t pc, uint32_t& work) {
  Known& of_pc = known(pc, work);
  if (!of_pc.whole) {
    const NotingSource code(*code_);
    const CompactRule rule = rule_from_memory_code(code, {pc}, work);
    of_pc.whole = RuleRead{rule, !code.has_failed()};
  }
  return *of_pc.whole;
}

CompactRule MemoryRules::whole(uint64_t pc, uint32_t& work) { return known_whole(pc, work).rule; }

std::optional<MemoryRules::RuleRead> MemoryRules::past_jumps(uint64_t pc, uint32_t& work) {
  Known& of_pc = known(pc, work);
  if (of_pc.past_jumps) return of_pc.past_jumps;
  if (!none_past_jumps_.is_due(place_of(pc))) {
    note_vain(place_of(pc));
    return std::nullopt;
  }
  const NotingSource code(*code_);
  const CompactRule rule = rule_past_jumps(code, {pc}, work);
  of_pc.past_jumps = RuleRead{rule, !code.has_failed()};
  return of_pc.past_jumps;
}

void MemoryRules::note_past_jumps(uint64_t pc, bool is_way) {
  if (is_way) return none_past_jumps_.clear(place_of(pc));
  none_past_jumps_.add(place_of(pc));
  note_vain(place_of(pc));
}

std::optional<MemoryRules::RuleRead> MemoryRules::own_way(uint64_t pc) {
  if (!none_further_in_.is_due(place_of(pc))) return std::nullopt;
  if (own_way_work_left_ == 0) return RuleRead{};
  uint32_t work = 0;
  const RuleRead& whole = known_whole(pc, work);
  own_way_work_left_ -= std::min(work, own_way_work_left_);
  return whole;
}

MemoryRules::Known& MemoryRules::known(uint64_t pc, uint32_t& work) {
  Known& place = known_[spread_bits(pc) >> kIndexShift];
  if (place.walk == walk_ && place.pc == pc) return place;
  place = {.walk = walk_, .pc = pc};
  std::array<std::byte, 1> first;
  work += kReadCodeWork;
  place.is_readable = code_->read_code({pc}, first);
  if (place.is_readable) place.straight = rule_from_straight_code(*code_, {pc}, work);
  return place;
}

}  // namespace sentry_prof::unwind
