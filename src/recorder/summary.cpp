#include "recorder/summary.h"

#include "base/counted.h"
#include "base/json_writer.h"
#include "base/path.h"
#include "base/utf8.h"
#include "os/privileges.h"
#include "recorder/run_notes.h"
#include "sampling/outer_block.h"

#include <algorithm>

#include <fmt/format.h>

namespace sentry_prof::recorder {

namespace {

constexpr size_t kShownFunctions = 5;
constexpr double kShownShare_percent = 0.05;  // what does not print as 0.0
constexpr size_t kShownProblems = 10;
// A demangled name may fill screens.
constexpr size_t kShownName_bytes = 90;

std::string decimal(double value) { return fmt::format("{:.6f}", value); }

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

uint64_t walks(const RunFigures& figures) {
  return figures.samples_complete() + figures.samples_truncated() + figures.samples_failed();
}

void add_number(JsonWriter& json, std::string_view key, uint64_t value) {
  json.key(key);
  json.number(value);
}

void add_decimal(JsonWriter& json, std::string_view key, double value) {
  json.key(key);
  json.raw(decimal(value));
}

void add_strings(JsonWriter& json, std::string_view key, const std::vector<std::string>& values) {
  json.key(key);
  json.begin_array();
  for (const std::string& value : values) json.string(value);
  json.end_array();
}

// {"name": count, ...} over an enumeration.
template <typename Enum, size_t N>
void add_counts(JsonWriter& json, std::string_view key, const std::array<uint64_t, N>& counts) {
  json.key(key);
  json.begin_object();
  for (size_t i = 0; i < N; ++i) add_number(json, name_of(static_cast<Enum>(i)), counts[i]);
  json.end_object();
}

void add_sample_figures(JsonWriter& json, const RunFigures& figures) {
  add_number(json, "samples", figures.samples_written);
  add_number(json, "samples_complete", figures.samples_complete());
  add_number(json, "samples_truncated", figures.samples_truncated());
  add_number(json, "samples_of_short_threads", figures.samples_of_short_threads);
  add_number(json, "samples_with_outer_stacks", figures.sample.samples_with_outer_stacks);
  add_number(json, "samples_with_live_frames", figures.sample.samples_with_live_frames);
  add_number(json, "samples_with_joined_frames", figures.sample.samples_with_joined_frames);
  add_number(json, "samples_with_frames_left_out", figures.sample.samples_with_frames_left_out);
  add_number(json, "samples_failed",
             figures.samples_failed() + figures.sample.loss(Loss::UnmappedPc));
  add_number(json, "samples_lost", figures.samples_lost());
  add_number(json, "sample_records", figures.sampler.sample_records);
  add_number(json, "idle_markers", figures.idle_markers_written);
  add_counts<Loss>(json, "losses", figures.sample.losses);
  add_counts<unwind::WalkEnd>(json, "walk_ends", figures.sample.walk_ends);
  add_counts<unwind::FrameOrigin>(json, "frames_by_origin", figures.sample.frames_by_origin);
  add_number(json, "outer_stacks_missed", figures.sample.outer_stacks_missed);
  add_number(json, "frames_live", figures.sample.live_frames);
  add_number(json, "frames_joined", figures.sample.joined_frames);
  add_number(json, "frames_left_out", figures.sample.frames_left_out);
  add_number(json, "samples_ending_in_unread_files", figures.sample.samples_ending_in_unread_files);
  add_number(json, "samples_ending_outside_files", figures.sample.samples_ending_outside_files);
  add_number(json, "samples_with_jit_frames", figures.sample.samples_with_jit_frames);
  add_number(json, "jit_frames", figures.jit.frames);
  add_number(json, "jit_frames_named", figures.jit.frames_named);
  add_number(json, "jit_frames_without_place", figures.sample.frames_without_place);
  add_number(json, "jit_maps_cut", figures.jit.maps_cut);
  add_number(json, "jit_map_bad_lines", figures.jit.bad_map_lines);
  add_number(json, "symbol_tables_cut", figures.symbol_tables_cut);
  add_number(json, "names_left_mangled", figures.names_left_mangled);
  add_number(json, "code_pages_not_read", figures.code_pages_not_read);
  add_number(json, "memory_reads_given_up", figures.memory_reads_given_up);
  add_number(json, "file_requests_given_up", figures.file_requests_given_up);
  add_number(json, "clock_steps", figures.sample.clock_steps);
  add_number(json, "state_forgotten", figures.state_forgotten);
}

void add_setup(JsonWriter& json, const sampling::SamplerSetup& setup) {
  json.member("event", setup.event_name);
  json.key("kernel_excluded");
  json.boolean(setup.kernel_excluded);
  json.key("copies_outer_stacks");
  json.boolean(setup.copies_outer_stacks);
  json.member("no_outer_stacks", printable_utf8(setup.no_outer_stacks));
  add_number(json, "stack_bytes", setup.stack_bytes);
  add_number(json, "ring_bytes_per_cpu", setup.ring_bytes_per_cpu);
  add_number(json, "cpus", setup.cpus);
  add_number(json, "threads_attached", setup.threads_attached);
}

void add_own_cost(JsonWriter& json, const RunFigures& figures) {
  add_decimal(json, "profiler_cpu_s", figures.profiler_cpu_s);
  add_number(json, "profiler_peak_rss_bytes", figures.profiler_peak_rss_bytes);
  add_number(json, "unwind_ns_total", figures.unwind_ns);
  add_number(json, "wakeups", figures.sampler.wakeups);
  add_number(json, "throttled", figures.sampler.throttled);
  add_number(json, "records", figures.sampler.records);
  add_number(json, "records_undecodable", figures.sampler.undecodable);
  add_number(json, "records_unknown_type", figures.sampler.unknown_type);
  add_number(json, "records_lost", figures.sampler.lost_records);
  add_number(json, "rule_cache_hits", figures.unwinder.cache_hits);
  add_number(json, "rule_cache_misses", figures.unwinder.cache_misses);
  add_number(json, "full_rows", figures.unwinder.full_rows);
  add_number(json, "walks_restarted", figures.unwinder.restarts);
  add_number(json, "frames_remembered", figures.unwinder.remembered_frames);
}

void add_uploads(JsonWriter& json, const UploadFigures& uploads) {
  json.key("uploads");
  json.begin_object();
  add_number(json, "accepted", uploads.accepted);
  add_number(json, "refused", uploads.refused);
  add_number(json, "dropped", uploads.dropped);
  add_number(json, "dropped_for_age", uploads.dropped_for_age);
  add_number(json, "dropped_for_size", uploads.dropped_for_size);
  add_number(json, "set_aside", uploads.set_aside);
  add_number(json, "not_kept", uploads.not_kept);
  add_number(json, "left_in_spool", uploads.left_in_spool);
  add_number(json, "unsent_files", uploads.unsent_files);
  add_number(json, "lost", uploads.lost);
  json.end_object();
}

// What only a conversion has.
void add_source(JsonWriter& json, const RunFigures& figures) {
  json.key("records_skipped");
  json.begin_object();
  for (const auto& [name, count] : figures.records_skipped) add_number(json, name, count);
  json.end_object();
}

void add_hottest(JsonWriter& json, const std::vector<HotFunction>& hottest) {
  json.key("hottest");
  json.begin_array();
  for (size_t i = 0; i < std::min(kShownFunctions, hottest.size()); ++i) {
    json.begin_object();
    json.member("function", hottest[i].function);
    json.member("code_file", hottest[i].code_file);
    add_number(json, "samples", hottest[i].samples);
    json.end_object();
  }
  json.end_array();
}

std::string walk_line(const RunFigures& figures) {
  const uint64_t all = walks(figures);
  if (all == 0 || figures.samples_written == 0) return "";
  // Of some a BPF program copies more.
  const std::string where = figures.setup.copies_outer_stacks
                                ? ""
                                : fmt::format(" at {} bytes", figures.setup.stack_bytes);
  std::string text = fmt::format(
      "  stacks    {:.1f} % complete, {:.1f} % cut{}, {:.1f} % ended early\n",
      percent(figures.samples_complete(), all), percent(figures.samples_truncated(), all), where,
      percent(figures.samples_failed(), all));
  if (const uint64_t live = figures.sample.samples_with_live_frames; live > 0) {
    text += fmt::format(
        "            {} have outer frames that were read from the process a moment later\n", live);
  }
  if (const uint64_t joined = figures.sample.samples_with_joined_frames; joined > 0) {
    text += fmt::format(
        "            {} of the complete ones have the outer frames of their thread's last or next "
        "whole stack\n",
        joined);
  }
  if (const uint64_t deep = figures.sample.samples_with_frames_left_out; deep > 0) {
    text += fmt::format("            {} deeper than {} frames: without those in the middle\n", deep,
                        unwind::kMaxFrames);
  }
  return text;
}

bool is_worth_telling(Loss loss, bool is_verbose) {
  return is_verbose || (loss != Loss::Duplicate && loss != Loss::OutsideProcess);
}

// Below the line of what the kernel lost.
std::string advice_on_lost_samples(const RunFigures& figures) {
  return figures.is_converted
             ? "            Record with a lower frequency (perf record -F) or larger buffers "
               "(-m).\n"
             : "            Lower --frequency or --stack-bytes; if the buffers are small (-v), "
               "raise kernel.perf_event_mlock_kb.\n";
}

std::string loss_lines(const RunFigures& figures, bool is_verbose) {
  std::string text;
  for (size_t i = 0; i < kLossCount; ++i) {
    const auto loss = static_cast<Loss>(i);
    const uint64_t count = figures.sample.losses[i];
    if (count == 0 || !is_worth_telling(loss, is_verbose)) continue;
    text += fmt::format("  lost      {}: {}\n", counted(count, "sample"), describe(loss));
    if (loss == Loss::RingFull) text += advice_on_lost_samples(figures);
  }
  if (figures.sampler.throttled > 0) {
    text += fmt::format("  throttled {} by the kernel: {}\n",
                        counted(figures.sampler.throttled, "time"),
                        figures.is_converted ? "record with a lower frequency (perf record -F)"
                                             : "lower --frequency");
  }
  const std::string broken_law = figures.broken_law();
  if (!broken_law.empty())
    text += fmt::format("  fault     samples went missing: {}\n", broken_law);
  return text;
}

std::string note_lines(const RunFigures& figures) {
  std::string text;
  for (const std::string& note : notes_of(figures)) text += "  note      " + note + '\n';
  return text;
}

// In brackets, which the kernel's names of what is no file ("[vdso]") have already.
std::string in_brackets(const std::string& file) {
  return file.starts_with('[') ? file : "[" + file + "]";
}

std::string hottest_lines(const RunFigures& figures) {
  std::string text;
  for (size_t i = 0; i < std::min(kShownFunctions, figures.hottest.size()); ++i) {
    const HotFunction& hot = figures.hottest[i];
    const double share = percent(hot.samples, figures.samples_written);
    if (share < kShownShare_percent) break;  // most samples first
    const std::string file(base_name(hot.code_file));
    text += fmt::format("    {:5.1f} %  {}{}\n", share,
                        shortened_utf8(printable_utf8(hot.function), kShownName_bytes),
                        file.empty() ? "" : "  " + in_brackets(printable_utf8(file)));
  }
  if (text.empty()) return "";
  return "  hottest functions (by samples in which they were running)\n" + text;
}

std::string problem_lines(const RunFigures& figures, bool is_verbose) {
  const auto& problems = figures.image_problems;
  if (problems.empty()) return "";
  if (!is_verbose) {
    const bool is_one = problems.size() == 1;
    return fmt::format(
        "  note      {} mapped file{} could not be read, or not {} unwind tables: {}{}\n",
        problems.size(), is_one ? "" : "s", is_one ? "its" : "their", printable_utf8(problems[0]),
        is_one ? "" : "; ... (-v tells the others)");
  }
  std::string text;
  for (size_t i = 0; i < std::min(kShownProblems, problems.size()); ++i) {
    text += fmt::format("  image     {}\n", printable_utf8(problems[i]));
  }
  if (problems.size() > kShownProblems) {
    text += fmt::format("  image     ... and {} more\n", problems.size() - kShownProblems);
  }
  return text;
}

// What follows "17 ".
std::string_view in_words(unwind::WalkEnd end) {
  using unwind::WalkEnd;
  switch (end) {
    case WalkEnd::Root:
      return "complete";
    case WalkEnd::StackTruncated:
      return "cut: deeper than the bytes that were copied";
    case WalkEnd::BadMemory:
      return "ended early: a frame lay outside the thread's stack";
    case WalkEnd::UnmappedPc:
      return "ended early: a return address where no code is mapped";
    case WalkEnd::NoUnwindInfo:
      return "ended early: code without unwind tables and without a frame pointer";
    case WalkEnd::OtherStack:
      return "ended early: called from a stack that was not copied";
    case WalkEnd::BadCfi:
      return "ended early: damaged unwind tables";
    case WalkEnd::Unsupported:
      return "ended early: unwind tables beyond the limits of sentry-prof";
    case WalkEnd::UnknownRegister:
      return "ended early: a register was needed that nobody had saved";
    case WalkEnd::NoProgress:
      return "ended early: going round in a circle";
    case WalkEnd::FrameLimit:
      break;
  }
  return "ended early: more frames than sentry-prof follows";
}

std::string setup_line(const RunFigures& figures) {
  const sampling::SamplerSetup& setup = figures.setup;
  std::string text = fmt::format("  set-up    {}, {} bytes of stack",
                                 printable_utf8(setup.event_name), setup.stack_bytes);
  if (figures.is_converted) return text + '\n';
  if (setup.copies_outer_stacks) {
    text += fmt::format(", {} KiB more of deep ones by BPF",
                        sampling::kMaxOuterBlocks * sampling::kOuterBlock_bytes / 1024);
  }
  if (!setup.no_outer_stacks.empty()) text += ", no BPF (" + setup.no_outer_stacks + ')';
  return text + fmt::format(", {} KiB of ring on each of {}, {} attached\n",
                            setup.ring_bytes_per_cpu / 1024, counted(setup.cpus, "CPU"),
                            counted(setup.threads_attached, "thread"));
}

double average(double sum, uint64_t count) {
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

// All of the CPU time is given, too: of a short run most is that of starting and ending.
std::string self_line(const RunFigures& figures) {
  return fmt::format(
      "  self      {:.0f} ms of CPU time, {:.1f} us a sample; a walk took {:.1f} us; {}; {} MiB at "
      "most\n",
      figures.profiler_cpu_s * 1e3, average(figures.profiler_cpu_s * 1e6, figures.samples_written),
      average(static_cast<double>(figures.unwind_ns) / 1e3, walks(figures)),
      counted(figures.sampler.wakeups, "wake-up"), figures.profiler_peak_rss_bytes >> 20);
}

std::string verbose_lines(const RunFigures& figures) {
  std::string text = setup_line(figures);
  for (const auto& [name, count] : figures.records_skipped) {
    text += fmt::format("  skipped   {}\n", counted(count, name + " record"));
  }
  text += self_line(figures);
  for (size_t i = 1; i < unwind::kWalkEndCount; ++i) {
    if (figures.sample.walk_ends[i] == 0) continue;
    text += fmt::format("  stacks    {} {}\n", figures.sample.walk_ends[i],
                        in_words(static_cast<unwind::WalkEnd>(i)));
  }
  return text;
}

// A recording of months has thousands, whose names tell no more than their number.
std::string file_lines(const std::vector<std::string>& files) {
  constexpr size_t kMaxShown = 20;
  const auto line = [](const std::string& text) { return fmt::format("  wrote     {}\n", text); };
  std::string text;
  if (files.size() > kMaxShown) {
    return line(fmt::format("{} files, {} to {}", files.size(), printable_utf8(files.front()),
                            printable_utf8(files.back())));
  }
  for (const std::string& file : files) text += line(printable_utf8(file));
  return text;
}

}  // namespace

std::string summary_json(const RunFigures& figures, const std::vector<std::string>& files) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  add_sample_figures(json, figures);
  add_number(json, "threads", figures.threads);
  add_number(json, "processes", figures.processes);
  add_number(json, "images", figures.images);
  add_number(json, "images_with_debug_cfi", figures.images_with_debug_cfi);
  add_number(json, "chunks", figures.chunks_written);
  add_number(json, "chunks_too_small", figures.chunks_too_small);
  add_number(json, "chunks_not_written", figures.chunks_not_written);
  add_strings(json, "files", files);
  add_strings(json, "write_errors", figures.write_errors);
  add_strings(json, "image_problems", figures.image_problems);
  add_strings(json, "notes", notes_of(figures));
  add_decimal(json, "duration_s", figures.duration_s);
  add_number(json, "requested_hz", figures.requested_hz);
  add_decimal(json, "effective_hz", figures.effective_hz());
  add_decimal(json, "target_cpu_s", static_cast<double>(figures.target_cpu_ns()) / 1e9);
  add_decimal(json, "command_cpu_s", static_cast<double>(figures.command_cpu_ns) / 1e9);
  add_setup(json, figures.setup);
  add_number(json, "cpus_not_sampled", figures.sampler.cpus_not_sampled);
  add_own_cost(json, figures);
  add_hottest(json, figures.hottest);
  if (figures.uploads) add_uploads(json, *figures.uploads);
  if (figures.is_converted) add_source(json, figures);
  json.end_object();
  text += '\n';
  return text;
}

std::string summary_text(const RunFigures& figures, const std::vector<std::string>& files,
                         bool is_verbose) {
  std::string text = fmt::format(
      "sentry-prof: {} in {:.1f} s, {} of {} process{}{}\n",
      counted(figures.samples_written, "sample"), figures.duration_s,
      counted(figures.threads, "thread"), figures.processes, figures.processes == 1 ? "" : "es",
      figures.effective_hz() == 0 ? "" : fmt::format(", {:.1f} Hz", figures.effective_hz()));
  text += walk_line(figures);
  text += loss_lines(figures, is_verbose);
  text += note_lines(figures);
  text += problem_lines(figures, is_verbose);
  if (is_verbose) text += verbose_lines(figures);
  text += hottest_lines(figures);
  return text + file_lines(files);
}

}  // namespace sentry_prof::recorder
