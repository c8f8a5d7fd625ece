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

// How far a sample's time and that of its blocks lie apart. Linux 6.2 and newer take the former
// just before the program runs. Two samples of a thread are farther apart: between them the first
// one's stack is copied into its record, 20 us and more.
inline constexpr uint64_t kMaxOuterDelay_ns = 20'000;

class OuterStackRing {
 public:
  // `data` is the ring's, a power of two of bytes, and outlives this. `max_copying_ns`: how long
  // the program may have run before the sample's time was taken (before Linux 6.2), less than lies
  // between two samples of a thread.
  OuterStackRing(Bytes data, uint64_t max_copying_ns)
      : data_(data), max_copying_ns_(max_copying_ns) {}

  // Looks at what lies between the two positions, which only grow, up to a block that is still
  // being written. What was given out before stays so.
  void look(uint64_t consumer, uint64_t producer);
  // What was copied for that sample and no other, by rising address, each as long as it is in one
  // piece. Samples of a thread in their order, each once. Valid until the next call, and until the
  // ring is given back. None if there was no room.
  std::span<const StackPiece> pieces_of(const SampledMoment& sample);
  // The position up to which blocks may be given back: those in front that are older than this.
  uint64_t consumed_before(uint64_t time_ns) const;

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
