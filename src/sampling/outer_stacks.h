// What samples have no room for of stacks that are deeper, copied by the kernel at the same moment:
// a BPF program beside each sampling event. Where the kernel refuses it (no CAP_BPF and
// CAP_PERFMON, before Linux 5.15, no BTF, another pid namespace than the first), nothing is there.
// A sample of which the kernel takes note while its CPU is in another BPF program is dropped, and
// nothing tells of it (bpf_prog_active in kernel/events/core.c).
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
  static Result<std::unique_ptr<OuterStacks>> create();
  OuterStacks(const OuterStacks&) = delete;
  OuterStacks& operator=(const OuterStacks&) = delete;
  ~OuterStacks();

  // Has the kernel run the program at the event's samples; threads that inherit the event inherit
  // it, too. False if it refuses.
  bool attach(int event_fd) const;
  // From now on outer parts of this thread's stack are copied. `stack_end`: the address behind its
  // last byte; 0: not known.
  void follow(uint32_t tid, uint64_t stack_end);

  // What the kernel has copied by now can be asked for.
  void look();
  std::span<const StackPiece> pieces_of(const SampledMoment& sample) {
    return ring_ ? ring_->pieces_of(sample) : std::span<const StackPiece>();
  }
  // Gives back what belongs to samples that are older than this.
  void release_before(uint64_t time_ns);

 private:
  OuterStacks(os::Fd threads, os::Fd ring_map, os::Fd program)
      : threads_(std::move(threads)),
        ring_map_(std::move(ring_map)),
        program_(std::move(program)) {}
  bool map_ring();

  os::Fd threads_, ring_map_, program_;
  std::byte* consumer_page_ = nullptr;
  std::byte* producer_page_ = nullptr;  // and behind it the bytes
  bool is_refused_ = false;             // to map it
  std::unique_ptr<OuterStackRing> ring_;
};

}  // namespace sentry_prof::sampling
