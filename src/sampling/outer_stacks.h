// What samples have no room for of stacks that are deeper, copied by the kernel at the same moment:
// a BPF program beside each sampling event. Where the kernel refuses it (no CAP_BPF and
// CAP_PERFMON, before Linux 5.15, no BTF, another pid namespace than the first), nothing is there.
// A sample of which the kernel takes note while its CPU is in another BPF program, or in a call of
// bpf(2) that reads or changes a map, is dropped, and nothing tells of it (bpf_prog_active in
// kernel/events/core.c and kernel/bpf/syscall.c).
#pragma once

#include "os/fd.h"
#include "sampling/outer_stack_ring.h"
#include "sentry_prof/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sentry_prof::sampling {

class OuterStacks {
 public:
  // For samples of that many a second on each of so many CPUs.
  static Result<std::unique_ptr<OuterStacks>> create(uint32_t frequency_hz, size_t cpus);
  OuterStacks(const OuterStacks&) = delete;
  OuterStacks& operator=(const OuterStacks&) = delete;
  ~OuterStacks();

  // Has the kernel run the program at the event's samples; threads that inherit the event inherit
  // it, too. False if it refuses.
  bool attach(int event_fd) const;
  // From now on outer parts of this thread's stack are copied. `stack_end`: the address behind its
  // last byte; 0: not known. And those of all threads of its process: it is not known of these.
  void follow(uint32_t pid, uint32_t tid, uint64_t stack_end);

  // What the kernel has copied by now can be asked for.
  void look();
  std::span<const StackPiece> pieces_of(const SampledMoment& sample) {
    return ring_ ? ring_->pieces_of(sample) : std::span<const StackPiece>();
  }
  // Gives back what belongs to samples that are older than this; none of them may be asked for
  // later.
  void release_before(uint64_t time_ns);

 private:
  OuterStacks() = default;
  void set_stack_end(uint32_t key, uint64_t stack_end) const;
  bool map_ring();

  os::Fd threads_, ring_map_, program_;
  size_t ring_bytes_ = 0;
  uint64_t max_copying_ns_ = 0;
  std::byte* consumer_page_ = nullptr;
  std::byte* producer_page_ = nullptr;  // and behind it the bytes
  bool is_refused_ = false;             // to map it
  std::unique_ptr<OuterStackRing> ring_;
};

}  // namespace sentry_prof::sampling
