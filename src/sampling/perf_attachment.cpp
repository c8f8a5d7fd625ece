#include "sampling/perf_attachment.h"

#include "base/counted.h"
#include "os/file.h"
#include "os/limits.h"
#include "os/process.h"
#include "sampling/cpu_list.h"
#include "sampling/perf_open.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

namespace sentry_prof::sampling {
namespace {

// A process that starts threads without a pause might never give a pass that finds nothing new.
// After two passes nearly all new ones have inherited their events anyway.
constexpr int kMaxPasses = 64;

Result<std::vector<int>> online_cpus() {
  const char* path = "/sys/devices/system/cpu/online";
  auto text = os::read_small_file(path, 64 * 1024);
  if (!text) return tl::unexpected<Error>(text.error());
  auto cpus = parse_cpu_list(*text);
  if (!cpus) return fail(ErrorCode::Malformed, fmt::format("{}: not a list of CPUs", path));
  return cpus;
}

// In a container `online` may be made up (lxcfs: a container with CPU 24 is shown CPU 0), or not be
// there. So what the kernel itself says of the threads counts, too.
Result<std::vector<int>> cpus_to_sample(std::span<const TargetThread> threads) {
  auto online = online_cpus();
  std::vector<int> cpus = online ? *online : std::vector<int>();
  std::vector<int> last;  // mostly all threads have the same
  const auto add = [&](pid_t tid) {
    std::vector<int> allowed = os::list_allowed_cpus(tid);
    if (allowed == last) return;
    last = std::move(allowed);
    cpus.insert(cpus.end(), last.begin(), last.end());
    std::ranges::sort(cpus);
    cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  };
  add(0);
  for (const TargetThread& thread : threads) add(thread.tid);
  return cpus.empty() ? online : std::move(cpus);
}

std::vector<TargetThread> list_threads_of(std::span<const pid_t> pids) {
  std::vector<TargetThread> threads;
  for (pid_t pid : pids) {
    const auto tids = os::list_threads(pid);
    if (!tids) continue;
    for (pid_t tid : *tids) threads.push_back({pid, tid});
  }
  return threads;
}

Error gone_error(std::span<const pid_t> pids) {
  return {ErrorCode::Gone, pids.size() == 1 ? fmt::format("process {} has ended", pids[0])
                                            : std::string("all processes have ended")};
}

uint32_t usable_stack_bytes(uint32_t asked) {
  if (asked == 0) return kMaxStack_bytes;
  return std::clamp(asked, 8u, kMaxStack_bytes) & ~7u;  // the kernel wants a multiple of eight
}

}  // namespace

Result<void> PerfAttachment::prepare(bool target_is_launched,
                                     std::span<const TargetThread> threads) {
  if (events_) return fail(ErrorCode::InvalidArgument, "a sampler attaches once");
  EventChoices wanted;
  wanted.event = options_.event;
  wanted.frequency_hz = options_.frequency_hz;
  wanted.stack_bytes = usable_stack_bytes(options_.stack_bytes);
  wanted.inherits_threads_only = !options_.follow_children;
  // Each switch from one thread of the target to another then costs some 7 us more (Linux 6.18):
  // worth it for a command that may be a build or a script, not for a server that is attached to.
  wanted.keeps_periods = target_is_launched && options_.follow_children;
  auto choices = probe_choices(wanted);
  if (!choices) return tl::unexpected<Error>(choices.error());
  choices_ = *choices;
  if (auto opened = open_rings_for(threads); !opened) return opened;
  open_outer_stacks();
  describe_setup();
  return {};
}

Result<void> PerfAttachment::open_rings_for(std::span<const TargetThread> threads) {
  auto cpus = cpus_to_sample(threads);
  if (!cpus) return tl::unexpected<Error>(cpus.error());
  auto rings = open_rings(
      *cpus, wanted_ring_bytes(choices_.frequency_hz, choices_.stack_bytes, cpus->size()));
  if (!rings) return tl::unexpected<Error>(rings.error());
  rings_ = std::move(*rings);
  return {};
}

void PerfAttachment::open_outer_stacks() {
  if (!options_.wants_outer_stacks) return;
  if (choices_.stack_bytes != kMaxStack_bytes) {
    setup_.no_outer_stacks = "--stack-bytes asks for less than a sample holds";
    return;
  }
  auto outer_stacks = OuterStacks::create(options_.frequency_hz, rings_.size());
  if (!outer_stacks) {
    setup_.no_outer_stacks = outer_stacks.error().message;
    return;
  }
  perf_event_attr attr = sampling_attr(choices_);
  attr.disabled = 1;
  const os::Fd own_event = open_event(attr, 0, -1);
  if (own_event.is_open() && (*outer_stacks)->attach(own_event.get())) {
    outer_stacks_ = std::move(*outer_stacks);
  } else {
    setup_.no_outer_stacks = "the kernel runs none beside these events";
  }
}

uint32_t PerfAttachment::cpus_without_ring() const {
  const auto cpus = online_cpus();
  if (!cpus) return 0;
  std::vector<int> sampled;
  for (const PerfRing& ring : rings_) sampled.push_back(ring.cpu());
  return static_cast<uint32_t>(count_unknown_cpus(*cpus, sampled));
}

void PerfAttachment::describe_setup() {
  const bool has_cycles = choices_.event == ClockEvent::Cycles;
  setup_.event_name = has_cycles ? "cycles" : "cpu-clock";
  setup_.fell_back_to_cpu_clock = options_.event == ClockEvent::Cycles && !has_cycles;
  setup_.kernel_excluded = choices_.excludes_kernel;
  setup_.has_switches = choices_.has_switches;
  setup_.counts_lost_samples = choices_.counts_lost;
  setup_.copies_outer_stacks = outer_stacks_ != nullptr;
  setup_.stack_bytes = choices_.stack_bytes;
  setup_.ring_bytes_per_cpu = rings_.empty() ? 0 : rings_.front().data().size();
  setup_.cpus = static_cast<uint32_t>(rings_.size());
  setup_.sample_type = common_sample_type();
  setup_.register_mask = user_register_mask();
}

ThreadAttrs PerfAttachment::thread_attrs(EventLayout layout) const {
  ThreadAttrs attrs{std::nullopt, sampling_attr(choices_), outer_stacks_.get()};
  if (layout == EventLayout::TwoEvents) {
    attrs.side_band = side_band_attr(choices_);
  } else {
    add_side_band(attrs.sampling, choices_);
  }
  return attrs;
}

// Raises the limit of open files. Where it does not do for both, samples come before the BPF
// program.
void PerfAttachment::make_room_for_events() {
  const uint64_t open = os::open_file_count();
  const uint64_t wanted = FileBudget(0, open).limit_for(events_needed(EventLayout::TwoEvents));
  files_ = FileBudget(os::raise_open_file_limit(wanted), open);
  const bool is_short = events_needed(EventLayout::OneEvent) > files_.events();
  if (!is_short || outer_stacks_ == nullptr) return;
  outer_stacks_.reset();
  setup_.copies_outer_stacks = false;
  setup_.no_outer_stacks = "the limit of open files leaves no room";
  files_ = FileBudget(files_.limit(), os::open_file_count());
}

// With a tenth to spare, for threads that are born meanwhile.
uint64_t PerfAttachment::events_needed(EventLayout layout) const {
  const uint64_t each = layout == EventLayout::TwoEvents ? 2 : 1;
  const uint64_t needed = uint64_t{threads_seen_} * rings_.size() * each;
  return needed + needed / 10;
}

int PerfAttachment::open_new_threads(std::span<const TargetThread> threads,
                                     const ThreadAttrs& attrs, DuplicateFilter* duplicates,
                                     std::unordered_set<pid_t>& known) {
  ThreadEvents::OnLateEvent on_late_event;
  if (duplicates != nullptr) {
    on_late_event = [&](uint32_t tid, uint32_t cpu, uint64_t identifier) {
      duplicates->add_late_event(tid, cpu, identifier);
    };
  }
  for (const auto& [pid, tid] : threads) {
    if (!known.insert(tid).second) continue;
    const int error_number = events_->open_thread(tid, attrs, on_late_event);
    if (error_number == ESRCH) continue;  // ended meanwhile
    if (error_number != 0) {
      refused_pid_ = pid;
      return error_number;
    }
    ++setup_.threads_attached;
  }
  return 0;
}

int PerfAttachment::attach_all(std::span<const pid_t> pids,
                               std::span<const TargetThread> first_threads, EventLayout layout,
                               DuplicateFilter& duplicates) {
  events_.emplace(rings_, files_.events());
  setup_.threads_attached = 0;
  const ThreadAttrs attrs = thread_attrs(layout);
  std::unordered_set<pid_t> known;
  // The first list was complete before any event existed: none of those threads can have inherited
  // one.
  int error_number = open_new_threads(first_threads, attrs, nullptr, known);
  for (int pass = 1; error_number == 0 && pass < kMaxPasses; ++pass) {
    const size_t known_before = known.size();
    error_number = open_new_threads(list_threads_of(pids), attrs, &duplicates, known);
    if (known.size() == known_before) break;
  }
  threads_seen_ = std::max(threads_seen_, known.size());
  if (error_number == 0 && setup_.threads_attached == 0) error_number = ESRCH;
  if (error_number != 0) {
    events_.reset();
    duplicates = {};
  }
  return error_number;
}

Result<void> PerfAttachment::attach(std::span<const pid_t> pids, DuplicateFilter& duplicates) {
  const std::vector<TargetThread> threads = list_threads_of(pids);
  if (threads.empty()) return tl::unexpected<Error>(gone_error(pids));
  if (auto prepared = prepare(false, threads); !prepared) return prepared;
  threads_seen_ = threads.size();
  make_room_for_events();
  int error_number = EMFILE;
  for (EventLayout layout : {EventLayout::TwoEvents, EventLayout::OneEvent}) {
    if (error_number != EMFILE || events_needed(layout) > files_.events()) continue;
    error_number = attach_all(pids, threads, layout, duplicates);
  }
  if (error_number == 0) return {};
  return tl::unexpected<Error>(explain(error_number, pids));
}

Error PerfAttachment::explain(int error_number, std::span<const pid_t> pids) const {
  if (error_number == ESRCH) return gone_error(pids);
  if (error_number != EMFILE) return explain_target_failure(error_number, refused_pid_);
  const uint64_t needed = files_.limit_for(events_needed(EventLayout::OneEvent));
  return {ErrorCode::LimitExceeded,
          fmt::format("too many threads for the limit of open files: {} on {} take a "
                      "limit of {}, and it is {}. Raise the hard limit (ulimit -n {} as root, "
                      "LimitNOFILE= of a service)",
                      counted(threads_seen_, "thread"), counted(rings_.size(), "CPU"), needed,
                      files_.limit(), needed)};
}

int PerfAttachment::open_before_exec(pid_t child, EventLayout layout) {
  events_.emplace(rings_, files_.events());
  ThreadAttrs attrs = thread_attrs(layout);
  attrs.sampling.disabled = 1;
  attrs.sampling.enable_on_exec = 1;
  const int error_number = events_->open_thread(child, attrs, {});
  if (error_number != 0) events_.reset();
  return error_number;
}

Result<void> PerfAttachment::attach_before_exec(pid_t child) {
  const TargetThread first{child, child};
  if (auto prepared = prepare(true, std::span(&first, 1)); !prepared) return prepared;
  threads_seen_ = 1;
  make_room_for_events();
  int error_number = EMFILE;
  for (const EventLayout layout : {EventLayout::TwoEvents, EventLayout::OneEvent}) {
    if (error_number != EMFILE || events_needed(layout) > files_.events()) continue;
    error_number = open_before_exec(child, layout);
  }
  if (error_number == 0) {
    setup_.threads_attached = 1;
    return {};
  }
  if (error_number == ESRCH) {
    return fail(ErrorCode::Gone, "the command was ended before it could start");
  }
  refused_pid_ = child;
  return tl::unexpected<Error>(explain(error_number, std::span(&child, 1)));
}

}  // namespace sentry_prof::sampling
