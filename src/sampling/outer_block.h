// What outer_stack_program.h copies, and how it lies in the ring.
#pragma once

#include "sampling/sampler.h"

#include <cstddef>
#include <cstdint>

namespace sentry_prof::sampling {

// What is copied of a stack at most: half of it from the record's end on, half of it up to the
// stack's end. 256 KiB take some 35 us of the target's time. A record ends where it is full, or
// before a page that is not present: of a local array that was not written to.
inline constexpr size_t kOuterPage_bytes = 4096;
inline constexpr size_t kOuterBlock_pages = 4;
inline constexpr size_t kOuterBlock_bytes = kOuterBlock_pages * kOuterPage_bytes;
inline constexpr size_t kMaxOuterBlocks = 16;
// Where a record may be full: the kernel copies as much less as there are return addresses found by
// frame pointers, and a mark before them. (The last page before is copied, too.)
inline constexpr uint64_t kOuterBegin_bytes =
    kMaxStack_bytes - (kMaxChainEntries + 1) * sizeof(uint64_t);

// That a sample has: each page may stand alone, and one may lie at both ends of the ring.
inline constexpr size_t kMaxOuterPieces = kMaxOuterBlocks * kOuterBlock_pages + 1;

// The key that all threads of a process are followed by, beside those of its threads: ids of tasks
// are below PID_MAX_LIMIT, 2^22 (include/linux/threads.h).
inline constexpr uint32_t kProcessKey = uint32_t{1} << 31;
constexpr uint32_t key_of_process(uint32_t pid) { return pid | kProcessKey; }

// Farther away is the end of another stack: a coroutine runs, whose end is not known.
inline constexpr uint64_t kMaxStackDistance_bytes = 64u << 20;

// What stands before each block's bytes.
struct OuterBlockHeader {
  uint32_t tid = 0;
  uint32_t pages_missing = 0;  // a bit each: not present, or no memory
  uint64_t stack_pointer = 0;  // of the sample
  uint64_t pc = 0;             // likewise
  // CLOCK_MONOTONIC, the same for all blocks of a sample, and mostly some microseconds from its
  // own.
  uint64_t time_ns = 0;
  uint64_t address = 0;  // of the first byte, a multiple of the page's size
};
static_assert(sizeof(OuterBlockHeader) == 40);

}  // namespace sentry_prof::sampling
