// An open-addressing table from hashes to indices. The keys live with the caller, in the order in
// which they came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace sentry_prof::profile {

// Finalizer of a 64-bit multiplicative hash: every input bit reaches every output bit.
constexpr uint64_t mix_bits(uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

// The target chooses its addresses: a seed keeps it from choosing ones that all collide.
inline uint64_t random_hash_seed() {
  std::random_device source;
  return (uint64_t{source()} << 32) | source();
}

// Grows by doubling at half load; allocates nothing while it does not grow.
class IndexTable {
 public:
  static constexpr uint32_t kNotFound = UINT32_MAX;

  IndexTable() : slots_(kFirstSlots) {}

  // The index that was inserted with this hash and for which `is_equal(index)` holds.
  template <typename IsEqual>
  uint32_t find(uint64_t hash, IsEqual is_equal) const {
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t i = hash & mask();; i = (i + 1) & mask()) {
      const Slot& slot = slots_[i];
      if (slot.index == kNotFound) return kNotFound;
      if (slot.tag == tag && is_equal(slot.index)) return slot.index;
    }
  }

  // Asks for the memory of where find() will look: for several hashes, none waits for another.
  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask()]); }

  // The caller has looked before: no such key is in the table. `hash_of(index)` is asked for every
  // index when the table grows.
  template <typename HashOf>
  void insert(uint64_t hash, uint32_t index, HashOf hash_of) {
    if (2 * (count_ + 1) > slots_.size()) grow(hash_of);
    put(hash, index);
    ++count_;
  }

 private:
  struct Slot {
    uint32_t tag = 0;  // upper half of the hash: most unequal keys are told apart here
    uint32_t index = kNotFound;
  };
  static constexpr size_t kFirstSlots = 1024;

  size_t mask() const { return slots_.size() - 1; }

  void put(uint64_t hash, uint32_t index) {
    size_t i = hash & mask();
    while (slots_[i].index != kNotFound) i = (i + 1) & mask();
    slots_[i] = {static_cast<uint32_t>(hash >> 32), index};
  }

  template <typename HashOf>
  void grow(HashOf hash_of) {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.index != kNotFound) put(hash_of(slot.index), slot.index);
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace sentry_prof::profile
