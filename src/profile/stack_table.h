// Finds equal stacks: each is kept once, its frame indices flattened behind those of the others.
#pragma once

#include "base/hash.h"
#include "profile/index_table.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace sentry_prof::profile {

// Stack i is frame_indices[begin[i] .. begin[i + 1]), leaf first; stack 0 is the empty one. Refers
// to the two vectors of a chunk, which only this may change while it lives.
struct StackList {
  std::vector<uint32_t>& frame_indices;
  std::vector<uint32_t>& begin;

  uint32_t count() const { return static_cast<uint32_t>(begin.size() - 1); }
  std::span<const uint32_t> operator[](uint32_t stack) const {
    return std::span<const uint32_t>(frame_indices)
        .subspan(begin[stack], begin[stack + 1] - begin[stack]);
  }
};

class StackTable {
 public:
  explicit StackTable(uint64_t hash_seed) : hash_seed_(hash_seed) {}

  // The number of `stack` in `list`, which it is added to if it is new.
  uint32_t index_of(std::span<const uint32_t> stack, StackList list) {
    if (stack.empty()) return 0;
    const uint64_t hash = hash_of(stack);
    const uint32_t found =
        table_.find(hash, [&](uint32_t i) { return std::ranges::equal(list[i], stack); });
    if (found != IndexTable::kNotFound) return found;
    const uint32_t index = list.count();
    list.frame_indices.insert(list.frame_indices.end(), stack.begin(), stack.end());
    list.begin.push_back(static_cast<uint32_t>(list.frame_indices.size()));
    table_.insert(hash, index, [&](uint32_t i) { return hash_of(list[i]); });
    return index;
  }

  void clear() { table_ = {}; }

 private:
  uint64_t hash_of(std::span<const uint32_t> stack) const {
    uint64_t hash = hash_seed_;
    // One multiplication a frame in the chain, since each waits for the one before.
    for (uint32_t index : stack) hash = spread_bits(std::rotl(hash, 5) ^ index);
    return mix_bits(hash);
  }

  uint64_t hash_seed_;
  IndexTable table_;
};

}  // namespace sentry_prof::profile
