#include "unwind/rule_cache.h"

#include <algorithm>
#include <bit>

namespace sentry_prof::unwind {

RuleCache::RuleCache(size_t size_bytes) {
  // Far more than any sensible size needs.
  constexpr size_t kMaxSets = size_t{1} << 24;
  const size_t wanted = std::bit_floor(size_bytes / sizeof(Set));
  if (wanted == 0) return;
  const size_t count = wanted < kMaxSets ? wanted : kMaxSets;
  // calloc instead of new: fresh pages come zeroed, and nothing touches them before their use.
  memory_.reset(std::calloc(count + 1, sizeof(Set)));
  if (!memory_) return;
  void* aligned = memory_.get();
  size_t space_bytes = (count + 1) * sizeof(Set);
  sets_ = static_cast<Set*>(std::align(sizeof(Set), count * sizeof(Set), aligned, space_bytes));
  set_count_ = count;
  index_shift_ = 64 - std::max(std::countr_zero(count), 1);
}

void RuleCache::insert(uint64_t key, CompactRule rule) {
  if (set_count_ == 0 || key == kNoKey) return;
  Set& set = set_of(key);
  size_t place = 0;  // of the key, if it is there, else of the one that falls out
  while (place + 1 < set.size() && set[place].key != key) ++place;
  for (size_t i = place; i > 0; --i) set[i] = set[i - 1];
  set[0] = {key, rule};
}

}  // namespace sentry_prof::unwind
