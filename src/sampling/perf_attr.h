// The attributes of the events that are opened. Sources: perf_event_open(2), linux/perf_event.h.
#pragma once

#include "sampling/sampler.h"

#include <cstdint>
#include <optional>

#include <linux/perf_event.h>

namespace sentry_prof::sampling {

// The registers that an unwinder needs, as a sample_regs_user mask of the machine this is built
// for.
uint64_t user_register_mask();
struct PlaceOfThread {
  uint64_t stack_pointer = 0;
  uint64_t pc = 0;
};
// Of a sample with these registers; none if it has none.
std::optional<PlaceOfThread> place_of(const UserRegisters& registers);
// What both events put into their records.
uint64_t common_sample_type();

// What the kernel may refuse: older ones know less, and unprivileged users may not ask for all.
struct EventChoices {
  ClockEvent event = ClockEvent::CpuClock;
  uint32_t frequency_hz = 101;
  uint32_t stack_bytes = kMaxStack_bytes;     // a multiple of eight, at most this
  uint16_t chain_entries = kMaxChainEntries;  // at most kernel.perf_event_max_stack
  bool excludes_kernel = false;
  bool has_build_ids = true;           // Linux 5.12
  bool has_switches = true;            // Linux 4.3
  bool inherits_threads_only = false;  // Linux 5.13
  bool counts_lost = true;             // Linux 6.0
  bool keeps_periods = true;           // a parent keeps its period: Linux 6.13
};

// What read(2) gives of a sampling event, summed up over all threads and processes that inherited
// it, the ended ones included.
struct EventCount {
  uint64_t value;
  uint64_t time_running_ns;  // for which its threads were on its CPU
  uint64_t lost;             // only with EventChoices::counts_lost
};

// Takes samples; enabled from its opening on.
perf_event_attr sampling_attr(const EventChoices& choices);
// Tells of mappings, names, threads and context switches; enabled from its opening on.
perf_event_attr side_band_attr(const EventChoices& choices);
// Makes any event tell what the side band tells, for one event in the place of two.
void add_side_band(perf_event_attr& attr, const EventChoices& choices);
// Only holds a ring. `watermark_bytes`: poll wakes up each time so much was written.
perf_event_attr ring_owner_attr(uint32_t watermark_bytes);

}  // namespace sentry_prof::sampling
