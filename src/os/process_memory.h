// Another process's memory.
#pragma once

#include "os/patience.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <sys/types.h>

namespace sentry_prof::os {

// Copies the process's memory from `address` on, as far as it is mapped, and returns how many bytes
// that was. 0 if none is, the process has ended, or we may not (as for ptrace: proc(5),
// process_vm_readv(2)). The process is not stopped. Waits for pages that are not there as long as
// that process would: for ever, if nobody brings them.
size_t read_memory(pid_t pid, uint64_t address, std::span<std::byte> out);

// One of the ranges that are read in one go.
struct MemoryRange {
  uint64_t address = 0;
  std::span<std::byte> out;
  size_t got_bytes = 0;  // from the first on
};

// The same without waiting: on a thread of its own, which is left behind where a page does not come
// (userfaultfd(2), a file of a server that is gone). Nothing but the reader's own end wakes a
// thread that waits so. One thread at a time may call.
class ProcessMemoryReader {
 public:
  // For one read, or twice if we did not run meanwhile. A page that was swapped out comes within a
  // few milliseconds.
  static constexpr uint64_t kLongestWait_ns = 20'000'000;
  // Copying what may be read in a second takes half of it.
  static constexpr uint64_t kPatienceShare = 5;
  static constexpr uint64_t kMostPatience_ns = 200'000'000;
  // Threads that are left behind. With as many nothing is read any more.
  static constexpr size_t kMaxLate = 8;

  ProcessMemoryReader();
  ProcessMemoryReader(const ProcessMemoryReader&) = delete;
  ProcessMemoryReader& operator=(const ProcessMemoryReader&) = delete;
  ~ProcessMemoryReader();

  // As read_memory(), one range after the other: a turn of the thread takes longer than a page.
  // Nothing also if it takes too long, and as long as an earlier read of that process has not come
  // back. One that the thread has not begun in time, on a busy machine, is taken back.
  void read(pid_t pid, std::span<MemoryRange> ranges);

  // Reads that took too long, that the thread had not begun, and those that were not tried
  // therefore, or for want of a thread.
  uint64_t reads_given_up() const { return reads_given_up_; }

 private:
  class Worker;
  struct Late {
    pid_t pid = 0;
    std::shared_ptr<Worker> worker;
  };

  bool may_read(pid_t pid);
  bool try_to_read(pid_t pid, std::span<MemoryRange> ranges);

  std::shared_ptr<Worker> worker_;  // null: none is needed so far, or it was left behind
  std::vector<Late> late_;
  Patience patience_{kPatienceShare, kMostPatience_ns};
  uint64_t reads_given_up_ = 0;
};

}  // namespace sentry_prof::os
