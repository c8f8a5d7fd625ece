// What a snapshot's end cut off, read from the process that goes on running.
#pragma once

#include "base/address.h"
#include "base/byte_reader.h"
#include "unwind/walk.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace sentry_prof::recorder {

// Memory of a process as it is now, for a sample of `sample_time_ns`: how many bytes from the first
// on could be read. 0 if it is too late.
struct MemoryRequest {
  uint32_t pid = 0;
  uint64_t sample_time_ns = 0;
  RuntimeAddress address;
};
using ReadMemory = std::function<size_t(const MemoryRequest&, std::span<std::byte>)>;

// The frames of a stack that were there when the sample was taken are there as long as the
// innermost of them has not returned: none of its callers runs before. So a stack that is deeper
// than its copy can be completed, for as long as the last return address found in the copy is where
// it was.
class LiveStack {
 public:
  explicit LiveStack(ReadMemory read) : read_(std::move(read)) {}

  // Whether the process's stack still is what `cut_walk` has seen of it. Then bytes() is empty.
  bool begin(const MemoryRequest& above_copy, const unwind::Walk& cut_walk);
  // Reads more of the stack, or gives up: at its end, at kMaxLiveStack_bytes, or beyond what may be
  // read in a second.
  bool grow();

  Bytes bytes() const { return std::span(buffer_).first(size_bytes_); }

 private:
  bool spend(size_t bytes);

  ReadMemory read_;
  MemoryRequest above_copy_;
  std::vector<std::byte> buffer_;
  size_t size_bytes_ = 0;
  bool is_at_end_ = false;
  uint64_t budget_bytes_ = 0;
  uint64_t budget_time_ns_ = 0;
};

// The default size of a stack (RLIMIT_STACK).
inline constexpr size_t kMaxLiveStack_bytes = 8u << 20;

}  // namespace sentry_prof::recorder
