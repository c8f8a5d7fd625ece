// The ring of a BPF ring buffer, and the parts of stacks in it (outer_stack_program.h). Pure.
// Source: Documentation/bpf/ringbuf.rst, kernel/bpf/ringbuf.c.
#pragma once

#include "sampling/event.h"
#include "sampling/outer_stack_program.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sentry_prof::sampling {

// How far the clock readings of a block and of its sample may lie apart: the kernel takes the one
// before it prepares the sample, the other before it copies the blocks.
inline constexpr uint64_t kOuterClock_ns = 5'000'000;

class OuterStackRing {
 public:
  // `data` is the ring's, a power of two of bytes, and outlives this.
  explicit OuterStackRing(Bytes data) : data_(data) {}

  // Looks at what lies between the two positions, which only grow, up to a block that is still
  // being written.
  void look(uint64_t consumer, uint64_t producer);
  // What was copied for that sample, by rising address, each as long as it is in one piece. Valid
  // until the next call, and until the ring is given back.
  std::span<const StackPiece> pieces_of(uint32_t tid, uint64_t stack_pointer, uint64_t time_ns);
  // The position up to which blocks may be given back: those in front that are older than this.
  uint64_t consumed_before(uint64_t time_ns) const;

 private:
  struct Block {
    OuterBlockHeader header;
    uint64_t position = 0;  // of its bytes
    uint64_t end = 0;       // of its record
  };
  // Positions count on and on; out may be empty.
  bool read(uint64_t position, std::span<std::byte> out) const;
  void add_pieces(const Block& block);
  void add_piece(uint64_t address, uint64_t position, size_t size_bytes);

  Bytes data_;
  uint64_t consumer_ = 0;
  std::vector<Block> blocks_;
  std::vector<StackPiece> pieces_;
};

}  // namespace sentry_prof::sampling
