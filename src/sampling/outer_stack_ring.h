// The ring of a BPF ring buffer, and the parts of stacks in it (outer_stack_program.h). Pure.
// Source: Documentation/bpf/ringbuf.rst, kernel/bpf/ringbuf.c.
#pragma once

#include "sampling/event.h"
#include "sampling/outer_block.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sentry_prof::sampling {

// A sample, as its record and its blocks tell it.
struct SampledMoment {
  uint32_t tid = 0;
  uint64_t stack_pointer = 0;
  uint64_t pc = 0;
  uint64_t time_ns = 0;  // the record's own
};

// How far the time of its blocks may lie behind a sample's, which Linux 6.3 and newer take just
// before the program runs, and before it: older ones take it when the program has copied.
inline constexpr uint64_t kMaxOuterDelay_ns = 20'000;
inline constexpr uint64_t kMaxCopying_ns = 500'000;
// But no longer than half of the time between two samples: another one's blocks are not near it.
uint64_t max_copying_ns(uint32_t frequency_hz);

class OuterStackRing {
 public:
  // `data` is the ring's, a power of two of bytes, and outlives this. `max_copying_ns`: above.
  OuterStackRing(Bytes data, uint64_t max_copying_ns)
      : data_(data), max_copying_ns_(max_copying_ns) {}

  // Looks at what lies between the two positions, which only grow, up to a block that is still
  // being written. What was given out before stays so.
  void look(uint64_t consumer, uint64_t producer);
  // What was copied for that sample and no other, by rising address, each as long as it is in one
  // piece. To be asked for each sample of a thread, in their order, also for one that is dropped:
  // what is older is nobody's then. Valid until the next call, and until the ring is given back.
  // None if there was no room.
  std::span<const StackPiece> pieces_of(const SampledMoment& sample);
  // Forgets the blocks in front that are older than this: up to the position that it returns, they
  // may be given back.
  uint64_t forget_before(uint64_t time_ns);

 private:
  struct Block {
    OuterBlockHeader header;
    uint64_t position = 0;  // of its bytes
    uint64_t end = 0;       // of its record
    bool is_taken = false;
  };
  bool read(uint64_t position, std::span<std::byte> out) const;
  bool is_of(const Block& block, const SampledMoment& sample) const;
  void add_pieces(const Block& block);
  void add_piece(uint64_t address, uint64_t position, size_t size_bytes);

  Bytes data_;
  uint64_t max_copying_ns_;
  uint64_t consumer_ = 0;
  uint64_t looked_at_ = 0;  // up to there
  std::vector<Block> blocks_;
  std::vector<StackPiece> pieces_;
};

}  // namespace sentry_prof::sampling
