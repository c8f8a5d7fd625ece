// Asking for a sampled process's memory, without knowing how it is read.
#pragma once

#include "base/address.h"
#include "os/process_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace sentry_prof::recorder {

enum class MemoryKind : uint8_t { Stack, Code };

// Memory of a process as it is now, for a sample of `sample_time_ns`.
struct MemoryRequest {
  uint32_t pid = 0;
  uint64_t sample_time_ns = 0;
  MemoryKind kind = MemoryKind::Stack;
};

// A sample is handed on within kPollInterval_ns and what the merge holds back. Much later the stack
// that it saw is gone, and each attempt a waste. Code mostly stays as it was, and without it no
// sample that waits in the rings of a busy machine could be walked.
constexpr uint64_t kLatestStackRead_ns = 500'000'000;
constexpr bool is_too_late(const MemoryRequest& request, uint64_t now_ns) {
  return request.kind == MemoryKind::Stack &&
         now_ns - std::min(now_ns, request.sample_time_ns) > kLatestStackRead_ns;
}

// Fills the ranges, one after the other; nothing of them if it is too late. When that was done.
using ReadMemory = std::function<uint64_t(const MemoryRequest&, std::span<os::MemoryRange>)>;

}  // namespace sentry_prof::recorder
