// Asking for a sampled process's memory, without knowing how it is read.
#pragma once

#include "base/address.h"
#include "os/process_memory.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace sentry_prof::recorder {

// Memory of a process as it is now, for a sample of `sample_time_ns`.
struct MemoryRequest {
  uint32_t pid = 0;
  uint64_t sample_time_ns = 0;
};
// Fills the ranges, one after the other; nothing of them if it is too late. When that was done.
using ReadMemory = std::function<uint64_t(const MemoryRequest&, std::span<os::MemoryRange>)>;

}  // namespace sentry_prof::recorder
