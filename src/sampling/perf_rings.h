// One ring buffer a CPU, shared with the kernel.
#pragma once

#include "os/fd.h"
#include "sampling/ring_reader.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <span>
#include <vector>

struct perf_event_mmap_page;

namespace sentry_prof::sampling {

// The size of each ring for about 250 ms of samples that carry whole stacks: a power of two.
uint64_t wanted_ring_bytes(uint32_t frequency_hz, uint32_t stack_bytes, size_t cpus);

// Owns a ring and the event that it belongs to: an idle one on our own thread, so that it never
// hangs up when a target ends. Other events of the same CPU are redirected into it.
class PerfRing {
 public:
  // The error is the errno of perf_event_open or mmap.
  static tl::expected<PerfRing, int> open(int cpu, uint64_t ring_bytes);
  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&&) = delete;
  ~PerfRing();

  int cpu() const { return cpu_; }
  int fd() const { return event_.get(); }
  Bytes data() const;
  // The kernel's end of the records; everything before it may be read.
  uint64_t load_head() const;
  uint64_t load_tail() const;
  // Gives everything before `tail` back to the kernel.
  void store_tail(uint64_t tail);
  // The kernel writes nothing more into it.
  void pause();

 private:
  PerfRing(int cpu, os::Fd event, perf_event_mmap_page* page, size_t mapped_bytes)
      : cpu_(cpu), event_(std::move(event)), page_(page), mapped_bytes_(mapped_bytes) {}
  int cpu_;
  os::Fd event_;
  perf_event_mmap_page* page_;
  size_t mapped_bytes_;
};

// Rings of equal size for those of `cpus` that are online, of `ring_bytes` or what the limit on
// locked memory allows: halved until it fits. LimitExceeded with advice if 128 KiB are too much.
Result<std::vector<PerfRing>> open_rings(std::span<const int> cpus, uint64_t ring_bytes);

}  // namespace sentry_prof::sampling
