// Compact rules by image and link address, filled on demand, bounded in bytes.
#pragma once

#include "base/address.h"
#include "base/hash.h"
#include "unwind/compact_rule.h"
#include "unwind/module_map.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace sentry_prof::unwind {

// 32 Ki entries: clang compiling one file touches about 10,000 return addresses. Fits into the
// second-level cache of the machines of these years.
inline constexpr size_t kDefaultRuleCache_bytes = 512 * 1024;

// Four-way set-associative; one set is one cache line. Keys are link addresses of images, so a rule
// serves every process that maps the image and no dlopen, dlclose or exec makes it wrong.
class RuleCache {
 public:
  // `size_bytes` is rounded down to a power of two; below 64 nothing is cached. The memory is
  // zeroed by the kernel page by page, so what is never used costs nothing.
  explicit RuleCache(size_t size_bytes);

  // A bit that no key_of() has, for the rules of exact pcs.
  static constexpr uint64_t kExactPc = uint64_t{1} << 63;

  // What find() never finds and insert() leaves out. Not std::nullopt: GCC 12 stores an optional in
  // two parts and loads it as a whole, which no CPU can forward. That was a third of the time of a
  // walk whose stack is in the cache.
  static constexpr uint64_t kNoKey = 0;

  // One number for an image and an address; kNoKey where it does not fit (an image id of 2^29 - 1
  // or more, an address of 2^34 or more): such a rule is worked out anew each time.
  static uint64_t key_of(ImageId image, LinkAddress pc) {
    if (image >= kImageLimit || pc.value >= (uint64_t{1} << kAddressBits)) return kNoKey;
    return (uint64_t{image + 1} << kAddressBits) | pc.value;
  }

  // Null if the key is not cached. Valid until the next insert or find.
  const CompactRule* find(uint64_t key);

  // Puts the rule in front of its set; the least recently used of the four falls out.
  void insert(uint64_t key, CompactRule rule);

  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }
  size_t size_bytes() const { return set_count_ * sizeof(Set); }

 private:
  // 16 GiB: no image is larger, but one may be linked to run at a higher address. The rest counts
  // the images of a recording of months.
  static constexpr unsigned kAddressBits = 34;
  static constexpr uint32_t kImageLimit = (uint32_t{1} << (63 - kAddressBits)) - 1;

  struct Entry {
    uint64_t key = kNoKey;  // the slot is free
    CompactRule rule;
  };
  static_assert(sizeof(Entry) == 16);
  using Set = std::array<Entry, 4>;  // most recently used first
  static_assert(sizeof(Set) == 64);

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  Set& set_of(uint64_t key) { return sets_[spread_bits(key) >> index_shift_ & (set_count_ - 1)]; }

  std::unique_ptr<void, Free> memory_;
  Set* sets_ = nullptr;  // in memory_, aligned to a cache line
  size_t set_count_ = 0;
  unsigned index_shift_ = 63;  // leaves as many bits as number the sets, one at least
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
};

inline const CompactRule* RuleCache::find(uint64_t key) {
  if (set_count_ == 0 || key == kNoKey) return nullptr;
  Set& set = set_of(key);
  for (size_t i = 0; i < set.size(); ++i) {
    if (set[i].key != key) continue;
    ++hits_;
    // Mostly it is in front: then nothing is written.
    if (i > 0) std::rotate(set.begin(), set.begin() + i, set.begin() + i + 1);
    return &set[0].rule;
  }
  ++misses_;
  return nullptr;
}

}  // namespace sentry_prof::unwind
