// The interface of a source of samples.
#pragma once

#include "sampling/event.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace sentry_prof::sampling {

enum class ClockEvent : uint8_t { CpuClock, Cycles };

// Return addresses that the kernel finds by frame pointers, at most: its own default
// (kernel.perf_event_max_stack).
inline constexpr uint16_t kMaxChainEntries = 127;

// The largest copy of a stack: 512 bytes below 64 KiB, since a record's size is a u16 and has to
// hold the registers as well, and some 35 return addresses found by frame pointers. Where there are
// more of them, the kernel copies as much less.
inline constexpr uint32_t kMaxStack_bytes = 65024;

// Above it the kernel's timer interrupts take more time than the program (its own default limit,
// kernel.perf_event_max_sample_rate, is ten times as high, and is lowered where they do).
inline constexpr uint32_t kMaxFrequency_hz = 10'000;

struct SamplerOptions {
  uint32_t frequency_hz = 101;
  ClockEvent event = ClockEvent::CpuClock;
  uint32_t stack_bytes = 0;     // 0: the largest the kernel can give
  bool follow_children = true;  // inherit into new processes (threads always)
  // Has the kernel copy more of stacks that are larger than a record, by a BPF program.
  bool wants_outer_stacks = true;
};

// What was really set up; for the summary and the messages to the user.
struct SamplerSetup {
  std::string event_name;  // "cpu-clock" or "cycles"
  bool fell_back_to_cpu_clock = false;
  bool kernel_excluded = false;      // time in system calls is missing (paranoid)
  bool has_switches = false;         // context switches are told (Linux 4.3)
  bool counts_lost_samples = false;  // the kernel does, per event (Linux 6.0)
  bool copies_outer_stacks = false;  // by BPF (Linux 5.15)
  std::string no_outer_stacks;       // why not; empty if so, or not asked for
  uint32_t stack_bytes = 0;
  uint64_t ring_bytes_per_cpu = 0;
  uint32_t cpus = 0;
  uint32_t threads_attached = 0;
  uint64_t sample_type = 0;    // PERF_SAMPLE_* bits of all records
  uint64_t register_mask = 0;  // sample_regs_user, tells the order of UserRegisters::words
};

struct SamplerStats {
  uint64_t records = 0;
  uint64_t sample_records = 0;  // all PERF_RECORD_SAMPLE seen, decodable or not
  // Samples that found no room in a ring. Exact after stop() where
  // SamplerSetup::counts_lost_samples (where one event does the work of two, for want of
  // descriptors, with its other records). Before, and elsewhere: all records of any kind that the
  // kernel has told to be lost so far.
  uint64_t lost_samples = 0;
  uint64_t lost_records = 0;  // other records (mappings, names, switches), as far as they are told
  uint64_t throttled = 0;
  uint64_t undecodable = 0;  // records of any type
  uint64_t undecodable_samples =
      0;                      // those of them that are samples, or an unreadable rest of a ring
  uint64_t unknown_type = 0;  // skipped by their size, as the ABI asks for
  uint64_t duplicate_samples =
      0;  // a thread born during the attach that was both inherited and opened
  uint64_t outside_samples = 0;   // of new processes, where children are not followed
  uint32_t cpus_not_sampled = 0;  // online at stop(), but not when the sampler was attached
  // CPU time of all threads while they were sampled, those that have ended included. Known after
  // stop(): by the clock that the kernel takes samples by; 0: not known.
  uint64_t on_cpu_ns = 0;
  uint64_t wakeups = 0;  // calls of drain() that were not final
};

// The kernel stamps a sample, then copies up to 64 KiB of stack, then publishes it. Only records
// older than this are surely all there. Where the hypervisor steps in between it may take longer;
// RingMerge then keeps the order.
inline constexpr uint64_t kPublishSlack_ns = 2'000'000;

// One recording's source of events. Single-threaded. Construction opens nothing.
class Sampler {
 public:
  virtual ~Sampler() = default;

  // Attach to every thread of each process, incl. those born meanwhile, without stopping any.
  // Sampling has begun when this returns. Gone if no thread of any of them is left;
  // PermissionDenied with advice.
  virtual Result<void> attach(std::span<const pid_t> pids) = 0;
  // For a child that has not called exec yet: sampling begins with its exec.
  virtual Result<void> attach_before_exec(pid_t child) = 0;

  // File descriptors to poll for POLLIN: readable when a ring is filling up.
  virtual std::span<const int> poll_fds() const = 0;
  // Hands on, in time order, all events that are kPublishSlack_ns older than the moment of the
  // call, but for some that the kernel published late. `is_final`: everything.
  virtual void drain(EventSink& sink, bool is_final) = 0;
  // The thread's stacks are larger than what a record holds: from now on SampleEvent::outer_stack
  // has more of them, where it can be had, and of those of its process's other threads, which may
  // be like it. `stack_end`: the address behind the stack's last byte; 0: not known.
  virtual void follow_outer_stack(uint32_t pid, uint32_t tid, uint64_t stack_end) = 0;
  // No more samples from here on; what is in the rings can still be drained.
  virtual void stop() = 0;

  virtual const SamplerSetup& setup() const = 0;
  virtual const SamplerStats& stats() const = 0;
};

}  // namespace sentry_prof::sampling
