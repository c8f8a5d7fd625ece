// The threads of one chunk: ids, names, and which to show first.
#pragma once

#include "profile/chunk_builder.h"
#include "sentry_prof/profile.h"

#include <cstdint>
#include <vector>

namespace sentry_prof::profile {

struct ChunkThreads {
  std::vector<Thread> threads;         // only those with a sample
  std::vector<uint32_t> index_of_raw;  // of each RawThread; without meaning for one without samples
  uint32_t main_thread = 0;
};

// The session's first thread with a tid has it as its id; the k-th further one (the kernel reused
// the tid) has tid + (k << 32), the same in every chunk: V1 knows numbers only.
ChunkThreads name_threads(const RawChunk& chunk, uint32_t main_pid);

}  // namespace sentry_prof::profile
