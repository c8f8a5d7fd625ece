#include "cli/perf_data_run.h"

#include "base/time_units.h"
#include "os/clock.h"
#include "os/system_info.h"
#include "recorder/stored_run.h"
#include "target/jit_map.h"
#include "target/local_opener.h"

#include <algorithm>
#include <utility>

#include <asm/perf_regs.h>
#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

using formats::PerfData;

// Where the event counts something else than time, or says so itself.
constexpr uint32_t kUsualFrequency_hz = 1000;
constexpr uint64_t kMaxFrequency_hz = 1'000'000;

// 0: each sample is of a number of counts.
uint32_t frequency_of(const perf_event_attr& attr) {
  uint64_t frequency_hz = attr.sample_freq;
  if (attr.freq == 0) {
    if (!formats::counts_nanoseconds(attr) || attr.sample_period == 0) return 0;
    frequency_hz = kNsPerSecond / attr.sample_period;  // perf record -c
  }
  return static_cast<uint32_t>(std::clamp<uint64_t>(frequency_hz, 1, kMaxFrequency_hz));
}

// Before Linux 3.7 (December 2012) perf had no stacks. Archives and stores that are to be the same
// every time give their files older times: 1970, or 1980.
constexpr uint64_t kFirstStacks_unix_ns = 1'355'000'000 * kNsPerSecond;

// Whether the recording can have ended when the file was last changed.
bool has_possible_time(const PerfData& data, const PerfDataRun& run) {
  const uint64_t length_ns = data.survey().last_time_ns - data.survey().first_time_ns;
  return run.file_modified_unix_ns >= kFirstStacks_unix_ns + length_ns;
}

// The clock of the records need not be one that is known here: perf's own is the scheduler's. So
// the last record is taken to be as old as the file.
profile::ClockAnchor anchor_of(const PerfData& data, const PerfDataRun& run) {
  if (const auto& clock = data.header().clock) return {clock->record_ns, clock->unix_ns};
  return {data.survey().last_time_ns,
          has_possible_time(data, run) ? run.file_modified_unix_ns : os::unix_ns()};
}

bool has_switches(const PerfData& data) {
  const auto& events = data.header().events;
  return std::any_of(events.begin(), events.end(), [](const formats::PerfEvent& event) {
    return event.attr.context_switch != 0;
  });
}

sampling::SamplerSetup setup_of(const PerfData& data) {
  const formats::PerfEvent& event = data.sampled_event();
  sampling::SamplerSetup setup;
  setup.event_name = event.name;
  setup.kernel_excluded = false;
  setup.has_switches = has_switches(data);
  setup.stack_bytes = event.attr.sample_stack_user;
  setup.sample_type = event.attr.sample_type;
  setup.register_mask = event.attr.sample_regs_user;
  return setup;
}

// perf writes what it knows of the clock behind the records; into a pipe, before them.
std::string note_of_clock(const PerfData& data, const PerfDataRun& run) {
  const std::string taken = has_possible_time(data, run)
                                ? "its end is taken to be when the file was last changed"
                                : "its end is taken to be now, since the time of the file's last "
                                  "change cannot be right";
  if (data.header().is_cut_off || data.header().lacks_features) {
    return "when it was recorded would stand behind the cut, if at all: " + taken;
  }
  return "the file does not say when it was recorded: " + taken +
         " (perf record -k CLOCK_MONOTONIC says it)";
}

// Of few stacks nothing is said.
constexpr double kManyCut = 0.05;
constexpr unsigned kLargestStack_bytes = 65'528;  // of perf's, the largest multiple of 8 it takes

std::string note_of_cut_stacks(const PerfData& data, const recorder::RunFigures& figures) {
  const uint32_t bytes = data.sampled_event().attr.sample_stack_user;
  const auto all = static_cast<double>(figures.sample.samples);
  if (static_cast<double>(figures.samples_truncated()) <= kManyCut * all) return "";
  if (bytes >= kLargestStack_bytes) return "";
  return fmt::format(
      "perf copied no more than {} bytes of each stack: record with --call-graph dwarf,{}", bytes,
      kLargestStack_bytes);
}

std::vector<std::string> notes_of(const PerfData& data, const PerfDataRun& run,
                                  const formats::PerfDataFigures& figures) {
  std::vector<std::string> notes;
  if (data.header().is_cut_off || data.survey().end == formats::PerfRecordsEnd::CutOff) {
    notes.push_back("the file is cut off: what perf wrote before was taken");
  }
  if (data.header().lacks_features) {
    notes.emplace_back(
        "the file is cut off behind its records: build ids and names of events may be missing");
  }
  if (data.header().exceeds_limits) {
    notes.emplace_back(
        "the file tells of more events, build ids or names than are read: some may be missing");
  }
  if (data.survey().end == formats::PerfRecordsEnd::Malformed) {
    notes.push_back("the file is damaged: what stands before the damage was taken");
  }
  if (!data.header().clock) notes.push_back(note_of_clock(data, run));
  if (!has_switches(data)) {
    notes.push_back("recorded without --switch-events: sleeping is drawn as work");
  }
  if (formats::counts_no_time(data.sampled_event().attr)) {
    notes.push_back("samples stand for counts of " + data.sampled_event().name +
                    ", not for time: Sentry draws them as time");
  }
  if (figures.samples_of_other_events > 0) {
    notes.push_back(fmt::format("{} samples of other events than {} were left out",
                                figures.samples_of_other_events, data.sampled_event().name));
  }
  if (figures.filtered_samples > 0) {
    notes.push_back(fmt::format("{} samples were left out by perf's own filter (--filter)",
                                figures.filtered_samples));
  }
  if (figures.idle_samples > 0) {
    notes.push_back(
        fmt::format("{} samples of idle CPUs, or of processes outside of perf's "
                    "pid namespace, were left out",
                    figures.idle_samples));
  }
  if (figures.late_records > 0) {
    notes.push_back(
        fmt::format("{} records were out of order, as perf's --mmap-flush and --aio may "
                    "leave them: samples may lack the mappings that these tell of",
                    figures.late_records));
  }
  return notes;
}

// Of a file of this machine. One of a pipe, or that was cut off, need not tell whose it is.
bool is_of_this_machine(const formats::PerfDataHeader& header) {
  const os::SystemInfo own = os::read_system_info();
  return header.host_name.empty() || header.host_name == own.host_name;
}

recorder::FindJitMap find_jit_maps_of(const PerfData& data, const profile::ClockAnchor& clock) {
  target::RecordedProcess process;
  process.recording_begin_unix_ns = clock.to_unix_ns(data.survey().first_time_ns);
  process.recording_end_unix_ns = clock.to_unix_ns(data.survey().last_time_ns);
  return [process, clock](uint32_t pid,
                          uint64_t program_begin_ns) mutable -> Result<target::JitMap> {
    process.pid = pid;
    process.program_begin_unix_ns = program_begin_ns == 0 ? 0 : clock.to_unix_ns(program_begin_ns);
    auto file = target::open_recorded_jit_map(process);
    if (!file) return tl::unexpected(std::move(file.error()));
    return target::jit_map_of(std::move(*file));
  };
}

recorder::StoredRunOptions options_of(const PerfData& data, const PerfDataRun& run) {
  const perf_event_attr& attr = data.sampled_event().attr;
  recorder::StoredRunOptions options;
  options.recording.clock = anchor_of(data, run);
  options.begin_ns = data.survey().first_time_ns;
  options.recording.chunk_ns = run.chunk_ns;
  options.recording.max_chunk_json_bytes = run.max_chunk_json_bytes;
  options.recording.frequency_hz =
      frequency_of(attr) == 0 ? kUsualFrequency_hz : frequency_of(attr);
  options.recording.register_mask = attr.sample_regs_user;
  options.recording.session = run.session;
  options.recording.main_pid = data.survey().main_pid;
  if (is_of_this_machine(data.header())) {
    options.recording.find_jit_map = find_jit_maps_of(data, options.recording.clock);
  }
  return options;
}

constexpr uint64_t bit(unsigned number) { return uint64_t{1} << number; }

// Whether these can be registers of this machine, among them those that every walk begins with.
bool are_own_registers(uint64_t mask) {
#if defined(__x86_64__)
  constexpr uint64_t kAll = bit(PERF_REG_X86_64_MAX) - 1;
  constexpr uint64_t kNeeded = bit(PERF_REG_X86_SP) | bit(PERF_REG_X86_IP);
#elif defined(__aarch64__)
  constexpr unsigned kVg = 46;  // PERF_REG_ARM64_VG of Linux 6.1, which perf asks for with SVE
  constexpr uint64_t kAll = (bit(PERF_REG_ARM64_PC + 1) - 1) | bit(kVg);
  constexpr uint64_t kNeeded = bit(PERF_REG_ARM64_SP) | bit(PERF_REG_ARM64_PC);
#else
#error "sentry-prof knows the registers of x86-64 and aarch64"
#endif
  return (mask & ~kAll) == 0 && (mask & kNeeded) == kNeeded;
}

// A file that was cut off, or of a pipe, need not name its machine: then its registers tell.
Result<void> check_arch(const PerfData& data) {
  const std::string own = os::read_system_info().architecture;
  const std::string& its = data.header().arch;
  const bool is_own =
      its.empty() ? are_own_registers(data.sampled_event().attr.sample_regs_user) : its == own;
  if (is_own) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("recorded on {}: convert it on such a machine, not on {}",
                          its.empty() ? "another architecture (its registers say)" : its, own));
}

bool has_own_kernel(const formats::PerfDataHeader& header) {
  const os::SystemInfo own = os::read_system_info();
  const os::KernelRelease release = os::split_kernel_release(header.os_release);
  return !header.host_name.empty() && header.host_name == own.host_name &&
         release.version == own.version && release.build == own.build;
}

}  // namespace

Result<recorder::RunFigures> convert_perf_data(const PerfData& data, const PerfDataRun& run,
                                               recorder::ChunkSink& sink) {
  if (auto ok = check_arch(data); !ok) return tl::unexpected(ok.error());
  recorder::StoredRunOptions options = options_of(data, run);
  // Damaged times must not make a file that is younger than the recording look older.
  const uint64_t begin_unix_ns =
      std::min(options.recording.clock.to_unix_ns(options.begin_ns), run.file_modified_unix_ns);
  const target::LocalFiles files{begin_unix_ns, run.build_id_cache, has_own_kernel(data.header())};
  auto stored =
      recorder::StoredRun::start(std::move(options), target::make_local_opener(files), sink);
  if (!stored) return tl::unexpected(stored.error());
  const auto played = data.play(**stored, [&stored] { return !(*stored)->is_broken(); });
  if (!played) return tl::unexpected(played.error());
  recorder::RunFigures figures =
      (*stored)->finish(data.survey().last_time_ns, played->stats, setup_of(data));
  figures.requested_hz = frequency_of(data.sampled_event().attr);
  // Without switches time on the CPU is not told from time off it.
  if (!has_switches(data)) figures.sample.on_cpu_ns = 0;
  figures.is_converted = true;
  figures.nothing_to_convert =
      "nothing was written: perf took no sample of " + data.sampled_event().name;
  std::vector<std::string> notes = notes_of(data, run, *played);
  figures.notes.insert(figures.notes.begin(), notes.begin(), notes.end());
  if (auto note = note_of_cut_stacks(data, figures); !note.empty()) {
    figures.notes.insert(figures.notes.begin(), std::move(note));
  }
  figures.records_skipped = played->skipped;
  if ((*stored)->is_broken()) {
    figures.notes.emplace_back(
        "nothing can be written any more: what came after was not converted");
  }
  return figures;
}

}  // namespace sentry_prof::cli
