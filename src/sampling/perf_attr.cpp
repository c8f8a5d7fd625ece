#include "sampling/perf_attr.h"

#include <bit>
#include <cstring>
#include <ctime>

#include <asm/perf_regs.h>

namespace sentry_prof::sampling {
namespace {

constexpr uint64_t kReadFormatLost = 1u << 4;  // PERF_FORMAT_LOST, not in headers before Linux 6.0

// All rings and events must use one clock, else the kernel does not redirect.
perf_event_attr base_attr() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.exclude_hv = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  return attr;
}

perf_event_attr thread_attr(const EventChoices& choices) {
  perf_event_attr attr = base_attr();
  attr.inherit = 1;
  attr.inherit_thread = choices.inherits_threads_only ? 1 : 0;
  attr.exclude_callchain_kernel = 1;
  attr.sample_type = common_sample_type();
  attr.sample_id_all = 1;
  // Only the ring's owner wakes us up.
  attr.watermark = 1;
  return attr;
}

// `number`: one of PERF_REG_*, which the mask has.
std::optional<uint64_t> register_of(const UserRegisters& registers, unsigned number) {
  const uint64_t below = user_register_mask() & ((uint64_t{1} << number) - 1);
  const size_t offset = static_cast<size_t>(std::popcount(below)) * sizeof(uint64_t);
  uint64_t value = 0;
  if (!registers.is_present || registers.words.size() < offset + sizeof(value)) return std::nullopt;
  std::memcpy(&value, registers.words.data() + offset, sizeof(value));
  return value;
}

}  // namespace

uint64_t user_register_mask() {
#if defined(__x86_64__)
  // No flags and no segment registers: CFI does not name them.
  constexpr uint64_t kAxToIp = (uint64_t{1} << (PERF_REG_X86_IP + 1)) - 1;
  constexpr uint64_t kR8ToR15 = uint64_t{0xff} << PERF_REG_X86_R8;
  return kAxToIp | kR8ToR15;
#elif defined(__aarch64__)
  return (uint64_t{1} << (PERF_REG_ARM64_PC + 1)) - 1;  // x0 to x30, sp, pc
#else
#error "sentry-prof knows the registers of x86-64 and aarch64"
#endif
}

std::optional<PlaceOfThread> place_of(const UserRegisters& registers) {
#if defined(__x86_64__)
  constexpr unsigned kStackPointer = PERF_REG_X86_SP, kPc = PERF_REG_X86_IP;
#elif defined(__aarch64__)
  constexpr unsigned kStackPointer = PERF_REG_ARM64_SP, kPc = PERF_REG_ARM64_PC;
#endif
  const auto stack_pointer = register_of(registers, kStackPointer);
  const auto pc = register_of(registers, kPc);
  if (!stack_pointer || !pc) return std::nullopt;
  return PlaceOfThread{*stack_pointer, *pc};
}

uint64_t common_sample_type() {
  // Used where CfiSource::has_frame_pointers(): never on aarch64.
#if defined(__x86_64__)
  constexpr uint64_t kFramePointers = PERF_SAMPLE_CALLCHAIN;
#else
  constexpr uint64_t kFramePointers = 0;
#endif
  return PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
         PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | kFramePointers;
}

perf_event_attr sampling_attr(const EventChoices& choices) {
  perf_event_attr attr = thread_attr(choices);
  const bool wants_cycles = choices.event == ClockEvent::Cycles;
  attr.type = wants_cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  if (wants_cycles) attr.config = PERF_COUNT_HW_CPU_CYCLES;
  attr.freq = 1;
  attr.sample_freq = choices.frequency_hz;
  attr.exclude_kernel = choices.excludes_kernel ? 1 : 0;
  attr.sample_regs_user = user_register_mask();
  attr.sample_stack_user = choices.stack_bytes;
  attr.sample_max_stack = choices.chain_entries;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING | (choices.counts_lost ? kReadFormatLost : 0);
  return attr;
}

perf_event_attr side_band_attr(const EventChoices& choices) {
  perf_event_attr attr = thread_attr(choices);
  attr.exclude_kernel = 1;
  // Never sampled; the kernel wants these whenever the bits of sample_type are set.
  attr.sample_regs_user = user_register_mask();
  attr.sample_stack_user = 8;
  // When a thread follows its parent on a CPU, the kernel swaps their contexts of events rather
  // than stopping them (perf_event_context_sched_out() in kernel/events/core.c): the parent's
  // unfinished period goes to the child and ends with it, so that what starts many short processes
  // is hardly sampled. Since Linux 6.13 a context with an inherited event that has this bit is not
  // swapped (nr_no_switch_fast). On this event, which takes no samples, it changes no record.
  if (choices.keeps_periods) attr.sample_type |= PERF_SAMPLE_READ;
  add_side_band(attr, choices);
  return attr;
}

void add_side_band(perf_event_attr& attr, const EventChoices& choices) {
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  attr.context_switch = choices.has_switches ? 1 : 0;
  attr.build_id = choices.has_build_ids ? 1 : 0;
}

perf_event_attr ring_owner_attr(uint32_t watermark_bytes) {
  perf_event_attr attr = base_attr();
  attr.exclude_kernel = 1;
  attr.disabled = 1;
  attr.watermark = 1;
  attr.wakeup_watermark = watermark_bytes;
  return attr;
}

}  // namespace sentry_prof::sampling
