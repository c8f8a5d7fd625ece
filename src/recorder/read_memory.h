// Asking for a sampled process's memory, without knowing how it is read.
#pragma once

#include "base/address.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace sentry_prof::recorder {

// Memory of a process as it is now, for a sample of `sample_time_ns`.
struct MemoryRequest {
  uint32_t pid = 0;
  uint64_t sample_time_ns = 0;
  RuntimeAddress address;
};
// How many bytes from the first on could be read, none if it is too late; and when that was done.
struct MemoryRead {
  size_t size_bytes = 0;
  uint64_t time_ns = 0;
};
using ReadMemory = std::function<MemoryRead(const MemoryRequest&, std::span<std::byte>)>;

}  // namespace sentry_prof::recorder
