// Code that a program has copied into memory without a file, in its own place.
#pragma once

#include "base/time_units.h"
#include "recorder/read_memory.h"
#include "unwind/module_map.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace sentry_prof::recorder {

// Compares such memory with the image's file when it is first seen running. What is the same is a
// module from then on, and not compared again until it is mapped anew. Of the recording thread.
class CopiedCode {
 public:
  // So many pages are compared, from the first to the last, besides that of the pc. All have to be
  // the file's, byte by byte: where one shows that code was patched, or relocated, nothing proves
  // that the rest is the file's, and all stays without an image. What differs on other pages only
  // is taken for the file's, as it is where a program patches what it has mapped.
  static constexpr size_t kSpreadPages = 8;
  // What is not the same may be so soon, and what could not be read may have been asked for too
  // late, or of a reader without patience. Then after twice the time, and so on.
  static constexpr uint64_t kFirstRetry_ns = kNsPerSecond / 50;
  static constexpr size_t kMaxRetries = 4096;

  explicit CopiedCode(ReadMemory read) : read_(std::move(read)) {}

  // Whether the process runs the code of `code`'s image at `pc`, which is in it. False also if its
  // memory cannot be read, or was looked at a short time before.
  bool is_copy(const MemoryRequest& request, const unwind::Module& code, RuntimeAddress pc);
  // Another program is in the process now, or none.
  void forget(uint32_t pid) { retries_.erase(pid); }

 private:
  struct Retry {
    uint64_t not_before_ns = 0;
    uint64_t back_off_ns = 0;
  };

  bool is_same(const MemoryRequest& request, const unwind::Module& code, RuntimeAddress pc) const;

  ReadMemory read_;
  std::unordered_map<uint32_t, Retry> retries_;  // by pid; of those that were not the same
};

}  // namespace sentry_prof::recorder
