#include "unwind/memory_rules.h"

#include "unwind/rule_cache.h"
#include "unwind/rule_from_code.h"

namespace sentry_prof::unwind {

const CompactRule* MemoryRules::straight(uint64_t pc, uint32_t& work) {
  if (code_ == nullptr) return nullptr;
  const Known& of_pc = known(pc, work);
  return of_pc.is_readable ? &of_pc.straight : nullptr;
}

CompactRule MemoryRules::whole(uint64_t pc, uint32_t& work) {
  Known& of_pc = known(pc, work);
  if (!of_pc.whole) of_pc.whole = rule_from_code(*code_, {pc}, work, kMaxInstructionsOfMemory);
  return *of_pc.whole;
}

MemoryRules::Known& MemoryRules::known(uint64_t pc, uint32_t& work) {
  Known& place = known_[RuleCache::spread(pc) >> kIndexShift];
  if (place.walk == walk_ && place.pc == pc) return place;
  place = {.walk = walk_, .pc = pc};
  std::array<std::byte, 1> first;
  work += kReadCodeWork;
  place.is_readable = code_->read_code({pc}, first);
  if (place.is_readable) place.straight = rule_from_straight_code(*code_, {pc}, work);
  return place;
}

}  // namespace sentry_prof::unwind
