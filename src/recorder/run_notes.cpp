#include "recorder/run_notes.h"

#include "base/counted.h"
#include "base/path.h"
#include "os/privileges.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace sentry_prof::recorder {

namespace {

// Of few samples the last, unfinished period of each thread is a large share by itself.
constexpr double kFewSamples = 20;
constexpr double kExpectedShare = 0.8;
// At high frequencies there are enough samples of it, but where threads begin and end counts more.
constexpr double kShort_ns = 20e6;
// A run as short as this need not have a sample, however busy the target is.
constexpr double kFewPeriods = 3;
// Regular expressions and foreign calls are compiled in many programs, and nobody names them.
constexpr double kWorthTelling = 0.05;
// Share of the command's CPU time that may be missing from our records before we warn: wait4(2) and
// the switch records differ by less.
constexpr double kUnseenShare = 0.2;
// Share of stacks that may be incomplete before we warn: even programs with many deep stacks have
// fewer.
constexpr double kManyStacks = 0.1;

double samples_taken(const RunFigures& figures) {
  return static_cast<double>(figures.sampler.sample_records + figures.samples_lost());
}

double samples_expected(const RunFigures& figures) {
  return static_cast<double>(figures.target_cpu_ns()) / 1e9 * figures.requested_hz;
}

// One sample for each period of CPU time is only what cpu-clock promises, and only if nothing is
// left out.
bool promises_one_sample_a_period(const RunFigures& figures) {
  return figures.setup.event_name == "cpu-clock" && !figures.setup.kernel_excluded &&
         figures.sampler.throttled == 0;
}

bool is_far_too_few(const RunFigures& figures, double taken, double expected) {
  return static_cast<double>(figures.target_cpu_ns()) >= kShort_ns && expected >= kFewSamples &&
         taken < kExpectedShare * expected;
}

// An event of a thread or process starts with a whole period (inherit_event() in
// kernel/events/core.c), on each CPU, and its last period goes unseen. Before Linux 6.13 that may
// be its parent's (side_band_attr()). So this is what ended threads may have cost at most.
bool threads_explain(const RunFigures& figures, double missing) {
  const double periods = static_cast<double>(figures.threads) * figures.setup.cpus;
  return missing <= periods;
}

// What to do for more samples of a thread; `otherwise`: what else may help.
std::string more_samples(const RunFigures& figures, const std::string& otherwise = "") {
  const std::string or_otherwise = otherwise.empty() ? "" : ", or " + otherwise;
  if (figures.is_converted) {
    return "Record with a higher frequency (perf record -F)" + or_otherwise;
  }
  if (figures.requested_hz < sampling::kMaxFrequency_hz) return "Raise --frequency" + or_otherwise;
  return fmt::format("There is no higher --frequency than {} Hz{}", sampling::kMaxFrequency_hz,
                     otherwise.empty() ? "" : ": " + otherwise);
}

std::string why_unseen(const RunFigures& figures) {
  if (!threads_explain(figures, samples_expected(figures) - samples_taken(figures))) {
    return "Probably the kernel's timer came late, as it does in a virtual machine whose host is "
           "busy";
  }
  return fmt::format(
      "A thread gets its first sample after {:.3g} ms on a CPU: those that used less, whether they "
      "have ended or not, got none. {}",
      1e3 / figures.requested_hz, more_samples(figures, "record longer"));
}

std::string shortfall(const RunFigures& figures) {
  if (samples_taken(figures) == 0 || !promises_one_sample_a_period(figures)) return "";
  const double expected = samples_expected(figures), taken = samples_taken(figures);
  if (!is_far_too_few(figures, taken, expected)) return "";
  return fmt::format("only {:.0f} % of the {:.2f} s of CPU time that the target used was seen. {}",
                     100 * taken / expected, static_cast<double>(figures.target_cpu_ns()) / 1e9,
                     why_unseen(figures));
}

// Where that is the only reason why nothing was written.
std::string single_samples(const RunFigures& figures) {
  const bool is_lost_otherwise =
      figures.sample.loss(Loss::ChunkNotWritten) + figures.sample.loss(Loss::ChunkQueueFull) > 0;
  if (figures.chunks_written > 0 || figures.chunks_too_small == 0 || is_lost_otherwise) return "";
  const std::string what =
      "nothing was written: no thread has two samples in one chunk, and Sentry takes no fewer. ";
  return what + more_samples(figures, "make longer chunks (--chunk-seconds)");
}

// By a program that takes itself from every profiler (perf_event_exec(), begin_new_exec() in the
// kernel): its events end with the exec, and count nothing any more.
std::string cpu_time_unseen(const RunFigures& figures) {
  const auto used_ns = static_cast<double>(figures.command_cpu_ns);
  const auto seen_ns = static_cast<double>(figures.target_cpu_ns());
  if (used_ns - seen_ns < std::max(kShort_ns, kUnseenShare * used_ns)) return "";
  return fmt::format(
      "of {:.2f} s of CPU time that the command used only {:.2f} s were in the recorder's sight: "
      "the kernel takes its events from a program that becomes setuid, or that its user may not "
      "read, when it is executed. {}ttach to it when it runs (-p)",
      used_ns / 1e9, seen_ns / 1e9, ::geteuid() == 0 ? "A" : "Record as root, or a");
}

// Of a command the kernel's accounting tells (cpu_time_unseen()); root sees what becomes root.
bool may_have_become_setuid(const RunFigures& figures) {
  return figures.command_cpu_ns == 0 && ::geteuid() != 0 && !os::has_capability(os::kCapSysAdmin);
}

std::string why_so_little(const RunFigures& figures) {
  // It works, and a few such recordings would have had a sample.
  if (samples_expected(figures) * kFewPeriods >= 1) return more_samples(figures, "record longer");
  return std::string(
             "It waits, or other processes do its work, or other programs have the CPUs, or it is "
             "frozen (a paused container)") +
         (may_have_become_setuid(figures)
              ? ", or it became setuid, which takes it from every profiler"
              : "");
}

// Less than a period.
std::string used_too_little(const RunFigures& figures) {
  return fmt::format(
      "nothing was written: the target used {:.1f} ms of CPU time in {:.1f} s, and there is a "
      "sample every {:.4g} ms of it. {}",
      static_cast<double>(figures.target_cpu_ns()) / 1e6, figures.duration_s,
      1e3 / figures.requested_hz, why_so_little(figures));
}

std::string nothing_written(const RunFigures& figures) {
  if (figures.is_converted && figures.sampler.sample_records == 0) {
    return figures.nothing_to_convert;
  }
  if (figures.is_converted && figures.sample.samples == 0) {
    return fmt::format(
        "nothing was written: none of its {} samples could be taken. Why is told with the losses",
        figures.sampler.sample_records);
  }
  if (samples_taken(figures) > 0 || figures.is_converted) return single_samples(figures);
  if (!cpu_time_unseen(figures).empty()) return "nothing was written";
  if (figures.target_is_stopped) {
    return "nothing was written: the target is stopped (by SIGSTOP, ^Z or a debugger) and used no "
           "CPU time";
  }
  if (const double period_s = 1.0 / figures.requested_hz;
      figures.duration_s < kFewPeriods * period_s) {
    return fmt::format(
        "nothing was written: in {:.0f} ms there was hardly time for a sample, of which there is "
        "one every {:.4g} ms of CPU time. Record a longer run, or raise --frequency",
        figures.duration_s * 1e3, period_s * 1e3);
  }
  if (samples_expected(figures) < 1) return used_too_little(figures);
  if (figures.setup.kernel_excluded) {
    return "nothing was written: the target was never in its own code when a sample was due";
  }
  if (!promises_one_sample_a_period(figures)) return "nothing was written: no sample was taken";
  return fmt::format("nothing was written: no sample was taken in {:.2f} s of CPU time. {}",
                     static_cast<double>(figures.target_cpu_ns()) / 1e9, why_unseen(figures));
}

std::string lost_records(const RunFigures& figures) {
  if (figures.sampler.lost_records == 0) return "";
  return fmt::format(
      "{} records of names, mappings or context switches got lost: stacks may end early, or have "
      "names of what was mapped in their place before, and sleeping may be drawn as work",
      figures.sampler.lost_records);
}

std::string memory_not_read(const RunFigures& figures) {
  if (figures.memory_reads_given_up == 0) return "";
  return fmt::format(
      "{} of the target's memory took too long and {} given up: stacks may be cut where "
      "they are deeper than their copies, or end in code that no file holds. Its pages came late "
      "(userfaultfd, files of a hanging server), or the machine is overloaded",
      counted(figures.memory_reads_given_up, "read"),
      figures.memory_reads_given_up == 1 ? "was" : "were");
}

std::string files_not_read(const RunFigures& figures) {
  const uint64_t count = figures.file_requests_given_up;
  if (count == 0) return "";
  return fmt::format(
      "{} for files of the target's got no answer in time, or {} not made because others "
      "had none: stacks may end in such files, and names be missing. Their file system does not "
      "answer (FUSE, NFS), or is slow, or the machine is overloaded",
      counted(count, "request"), count == 1 ? "was" : "were");
}

std::string dropped_by_sentry(const RunFigures& figures) {
  const auto samples = static_cast<double>(figures.samples_of_short_threads);
  if (samples <= kWorthTelling * static_cast<double>(figures.samples_written)) return "";
  return fmt::format(
      "{} of the {} samples are the only one of their thread in their file: Sentry drops these. {}",
      figures.samples_of_short_threads, figures.samples_written, more_samples(figures));
}

std::string clock_set(const RunFigures& figures) {
  if (figures.sample.clock_steps == 0) return "";
  return "the clock was set while recording, or the machine slept: chunks since then have the new "
         "time";
}

std::string state_forgotten(const RunFigures& figures) {
  if (figures.state_forgotten == 0) return "";
  return fmt::format(
      "there were more processes, threads or executable mappings than can be kept: what was known "
      "of {} of them was forgotten, and stacks may end early",
      figures.state_forgotten);
}

std::string nameless_jit_code(const RunFigures& figures) {
  const auto samples = static_cast<double>(figures.sample.samples_with_jit_frames);
  const bool is_much = samples > kWorthTelling * static_cast<double>(figures.sample.samples);
  const bool has_names = 2 * figures.jit.frames_named >= figures.jit.frames;
  if (!figures.looks_for_jit_maps || !is_much || has_names) return "";
  return "code that was compiled while the program ran has no names here. Many compilers write "
         "them for profilers (/tmp/perf-PID.map) if they are told to: node --perf-basic-prof, "
         "DOTNET_PerfMapEnabled=1, jcmd PID Compiler.perfmap, erl +JPperf true";
}

// The second number of CPython's version; none if the file has another name.
std::optional<unsigned> python3_version(std::string_view code_file) {
  constexpr std::string_view kName = "python3.";
  const std::string_view file = base_name(code_file);
  const size_t begin = file.find(kName);
  if (begin == file.npos) return std::nullopt;
  const std::string_view digits = file.substr(begin + kName.size());
  unsigned minor = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), minor);
  return error == std::errc() ? std::optional(minor) : std::nullopt;
}

// CPython 3.12 and later tell perf of their functions if they are told to.
std::string nameless_python(const RunFigures& figures) {
  constexpr unsigned kFirstThatTells = 12;
  uint64_t samples = 0;
  unsigned version = 0;
  for (const HotFunction& leaf : figures.hottest) {
    const auto of_leaf = python3_version(leaf.code_file);
    if (leaf.function != "_PyEval_EvalFrameDefault" || !of_leaf) continue;
    samples += leaf.samples;
    version = std::max(version, *of_leaf);
  }
  const bool is_much =
      static_cast<double>(samples) > kWorthTelling * static_cast<double>(figures.sample.samples);
  if (!figures.looks_for_jit_maps || !is_much || figures.jit.frames_named > 0) return "";
  return std::string("functions of Python scripts have no names here: ") +
         (version >= kFirstThatTells
              ? "python3 -X perf, or PYTHONPERFSUPPORT=1 in its environment, tells them"
              : "that takes Python 3.12 or newer, and its option -X perf");
}

std::string code_not_read(const RunFigures& figures) {
  const bool is_much = static_cast<double>(figures.sample.samples_ending_outside_files) >
                       kWorthTelling * static_cast<double>(figures.sample.samples);
  // What was given up memory_not_read() tells of.
  if (!is_much || figures.code_pages_not_read <= figures.memory_reads_given_up) return "";
  const std::string what =
      "stacks end in code that no file holds (JIT code, trampolines), and not all of it could be "
      "read. ";
  if (os::has_capability(os::kCapSysPtrace)) {
    return what + "Processes that end soon are gone by then; a security module may forbid it";
  }
  return what + "That takes the right to ptrace the target: " + os::how_to_get(os::kCapSysPtrace);
}

bool is_mostly(unwind::WalkEnd end, const RunFigures& figures) {
  return 2 * figures.sample.walk_ends[static_cast<size_t>(end)] > figures.samples_failed();
}

std::string why_stacks_end_early(const RunFigures& figures) {
  if (!is_mostly(unwind::WalkEnd::NoUnwindInfo, figures)) return "-v tells why";
  if (2 * figures.sample.samples_ending_in_unread_files > figures.samples_failed()) {
    return "most of them in mapped files that could not be read, or are no ELF files; they are "
           "named below";
  }
  if (2 * figures.sample.samples_with_jit_frames > figures.samples_failed()) {
    return "most of them in code that was compiled while the program ran and keeps no frame "
           "pointers. Some compilers keep them if they are told to: java -XX:+PreserveFramePointer";
  }
  return "most of them in code without unwind tables, which compilers write unless they are told "
         "not to (-fno-asynchronous-unwind-tables)";
}

std::string stacks_end_early(const RunFigures& figures) {
  const auto failed = static_cast<double>(figures.samples_failed());
  const auto all = static_cast<double>(figures.sample.samples);
  if (all < kFewSamples || failed <= kManyStacks * all) return "";
  return fmt::format("{:.0f} % of the stacks end early and lack their outermost callers, {}",
                     100 * failed / all, why_stacks_end_early(figures));
}

std::string stacks_are_cut(const RunFigures& figures) {
  const auto cut = static_cast<double>(figures.samples_truncated());
  const auto all = static_cast<double>(figures.sample.samples);
  const std::string& why = figures.setup.no_outer_stacks;
  if (why.empty() || all < kFewSamples || cut <= kManyStacks * all) return "";
  const std::string what = fmt::format(
      "{:.0f} % of the stacks are larger than what a sample holds, and cut. ", 100 * cut / all);
  if (figures.setup.stack_bytes < sampling::kMaxStack_bytes) {
    return what + fmt::format("Raise --stack-bytes, which is {}", figures.setup.stack_bytes);
  }
  return what + "A BPF program would copy more of them, but there is none: " + why;
}

std::string no_kernel_time(const RunFigures& figures) {
  if (!figures.setup.kernel_excluded) return "";
  return fmt::format("time in system calls is missing (kernel.perf_event_paranoid forbids it; {})",
                     os::how_to_get(os::kCapPerfmon));
}

std::string no_cycles_counter(const RunFigures& figures) {
  return figures.setup.fell_back_to_cpu_clock
             ? "this machine has no cycles counter; cpu-clock was used"
             : "";
}

std::string no_switches(const RunFigures& figures) {
  return figures.setup.has_switches
             ? ""
             : "this kernel tells of no context switches: sleeping is drawn as work";
}

std::string cut_symbol_tables(const RunFigures& figures) {
  if (figures.symbol_tables_cut == 0) return "";
  return fmt::format(
      "{} symbol table{} too large, or full of symbols over each other: names of functions may be "
      "missing or wrong in the profile. Sentry adds them from debug files",
      figures.symbol_tables_cut, figures.symbol_tables_cut == 1 ? " was" : "s were");
}

std::string mangled_names(const RunFigures& figures) {
  const uint64_t count = figures.names_left_mangled;
  if (count == 0) return "";
  return fmt::format(
      "{} of functions {} left as the linker has {}: to demangle all would have taken too long",
      counted(count, "name"), count == 1 ? "was" : "were", count == 1 ? "it" : "them");
}

std::string cut_jit_map(const RunFigures& figures) {
  if (figures.jit.maps_cut == 0) return "";
  return "a /tmp/perf-PID.map was too large to be read whole: code that was compiled long ago may "
         "have no names, or old ones";
}

std::string bad_jit_map(const RunFigures& figures) {
  const uint64_t lines = figures.jit.bad_map_lines;
  if (lines == 0) return "";
  return fmt::format(
      "/tmp/perf-PID.map has {} that {} not of the form \"START SIZE NAME\": names may be "
      "missing. Look whether the program that writes it is up to date",
      counted(lines, "line"), lines == 1 ? "is" : "are");
}

std::string late_cpus(const RunFigures& figures) {
  const uint32_t cpus = figures.sampler.cpus_not_sampled;
  if (cpus == 0) return "";
  return counted(cpus, "CPU") + " came online during the recording: what ran there was not sampled";
}

}  // namespace

std::string why_nothing_was_written(const RunFigures& figures) {
  std::string why = nothing_written(figures);
  return why.empty() ? "nothing was written" : why;
}

std::vector<std::string> notes_of(const RunFigures& figures) {
  std::vector<std::string> notes = figures.notes;
  if (figures.is_converted) {
    for (auto note : {nothing_written, no_kernel_time, dropped_by_sentry, lost_records,
                      state_forgotten, stacks_end_early, cut_symbol_tables, mangled_names}) {
      if (std::string text = note(figures); !text.empty()) notes.push_back(std::move(text));
    }
    return notes;
  }
  for (auto note :
       {nothing_written, no_kernel_time,    no_cycles_counter, no_switches,     cpu_time_unseen,
        shortfall,       dropped_by_sentry, lost_records,      memory_not_read, files_not_read,
        code_not_read,   stacks_end_early,  stacks_are_cut,    clock_set,       state_forgotten,
        nameless_python, nameless_jit_code, cut_symbol_tables, mangled_names,   cut_jit_map,
        bad_jit_map,     late_cpus}) {
    if (std::string text = note(figures); !text.empty()) notes.push_back(std::move(text));
  }
  return notes;
}

}  // namespace sentry_prof::recorder
