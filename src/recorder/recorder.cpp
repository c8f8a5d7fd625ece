#include "recorder/recorder.h"

#include "os/clock.h"
#include "os/file.h"
#include "os/priority.h"
#include "target/proc.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sentry_prof::recorder {

namespace {

// The rings hold at least a quarter of a second, so ten looks a second are enough; their watermark
// wakes us earlier should they fill faster than expected.
constexpr uint64_t kPollInterval_ns = 100'000'000;
// The sampler holds back events that the kernel may still be writing; only what is older than this
// is sure to have been handed on.
constexpr uint64_t kSettled_ns = 10'000'000;

Result<os::Fd> open_pidfd(int pid) {
  os::Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (fd.is_open()) return fd;
  const int error = errno;
  return fail(error == ESRCH ? ErrorCode::Gone : ErrorCode::Io,
              fmt::format("process {}: {}", pid, os::describe_errno(error)));
}

// A process that has ended since has no maps any more; its samples say so themselves. But without
// the right to read maps no sample could be unwound.
Result<void> take_snapshot(int pid, target::ProcessTable& processes) {
  auto snapshot = target::read_process(pid);
  if (snapshot) {
    processes.on_snapshot(*snapshot);
  } else if (snapshot.error().code == ErrorCode::PermissionDenied) {
    return fail(ErrorCode::PermissionDenied,
                snapshot.error().message + ". Without its maps no stack can be unwound: run as " +
                    "root, or with CAP_SYS_PTRACE");
  }
  return {};
}

// Whether each of the processes has ended.
bool all_ended(const std::vector<int>& pidfds) {
  return std::all_of(pidfds.begin(), pidfds.end(), [](int fd) {
    pollfd entry{fd, POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  });
}

}  // namespace

Recorder::Recorder(RecorderOptions options, sampling::Sampler& sampler,
                   const os::SignalSet& signals, ChunkSink& sink,
                   std::function<void(const Progress&)> show_progress)
    : options_(std::move(options)),
      sampler_(sampler),
      signals_(signals),
      sink_(sink),
      show_progress_(std::move(show_progress)) {}

Result<RunResult> Recorder::attach(std::span<const int> pids) {
  Target target;
  std::vector<os::Fd> pidfds;
  Ends ends;
  for (int pid : pids) {
    if (auto ok = target::check_is_profilable(pid); !ok) return tl::unexpected(ok.error());
    auto pidfd = open_pidfd(pid);
    if (!pidfd) return tl::unexpected(pidfd.error());
    ends.pidfds.push_back(pidfd->get());
    pidfds.push_back(std::move(*pidfd));
  }
  begin_ns_ = os::monotonic_ns();
  const os::RaisedPriority priority;
  if (auto ok = sampler_.attach(pids); !ok) return tl::unexpected(ok.error());
  for (int pid : pids) {
    if (auto ok = take_snapshot(pid, target.processes); !ok) return tl::unexpected(ok.error());
  }
  return run(target, static_cast<uint32_t>(pids.front()), std::move(ends), priority.previous());
}

Result<RunResult> Recorder::launch(target::LaunchedChild& child, int& exec_errno) {
  Target target;
  begin_ns_ = os::monotonic_ns();
  const os::RaisedPriority priority;  // the child was forked before
  if (auto ok = sampler_.attach_before_exec(child.pid()); !ok) return tl::unexpected(ok.error());
  auto released = child.release();
  if (!released) return tl::unexpected(released.error());
  exec_errno = *released;
  if (exec_errno != 0) {
    return fail(exec_errno == ENOENT ? ErrorCode::NotFound : ErrorCode::PermissionDenied,
                os::describe_errno(exec_errno));
  }
  return run(target, static_cast<uint32_t>(child.pid()), Ends{{child.pidfd().get()}, &child},
             priority.previous());
}

RunResult Recorder::run(Target& target, uint32_t main_pid, Ends ends, int normal_nice) {
  const profile::ClockAnchor clock{os::monotonic_ns(), os::unix_ns()};
  ChunkFinisher finisher(sink_, clock, normal_nice);
  RecordingOptions options;
  options.chunk_ns = options_.chunk_ns;
  options.max_chunk_json_bytes = options_.max_chunk_json_bytes;
  options.frequency_hz = options_.frequency_hz;
  options.register_mask = sampler_.setup().register_mask;
  options.session = options_.session;
  options.main_pid = main_pid;
  options.main_executable = options_.main_executable;
  options.reread_process = [](uint32_t pid) { return target::read_process(static_cast<int>(pid)); };
  Recording recording(std::move(options), target.processes, target.images, finisher, begin_ns_);

  RunResult result;
  loop(recording, target, ends, result);
  sampler_.stop();
  const uint64_t end_ns = os::monotonic_ns();
  sampler_.drain(recording, true);
  recording.finish(end_ns);
  fill_in(result.figures, recording, finisher.finish(), target);
  result.figures.duration_s = static_cast<double>(end_ns - begin_ns_) / 1e9;
  return result;
}

void Recorder::loop(Recording& recording, const Target& target, const Ends& ends,
                    RunResult& result) {
  const uint64_t deadline_ns = options_.duration_s
                                   ? begin_ns_ + static_cast<uint64_t>(*options_.duration_s * 1e9)
                                   : UINT64_MAX;
  for (bool is_over = false; !is_over;) {
    wait_for_events(ends, deadline_ns);
    is_over = is_time_to_stop(ends, deadline_ns, result);
    const uint64_t now_ns = os::monotonic_ns();
    sampler_.drain(recording, false);
    recording.on_time(now_ns - kSettled_ns);
    show_progress_({static_cast<double>(now_ns - begin_ns_) / 1e9, recording.figures().samples,
                    sampler_.stats().lost_samples + sampler_.stats().lost_records,
                    target.processes.thread_count()});
  }
}

void Recorder::wait_for_events(const Ends& ends, uint64_t deadline_ns) const {
  std::vector<pollfd> entries = {{signals_.fd(), POLLIN, 0}};
  for (int fd : ends.pidfds) {
    if (ends.pidfds.size() == 1 || !all_ended({fd})) entries.push_back({fd, POLLIN, 0});
  }
  for (int fd : sampler_.poll_fds()) entries.push_back({fd, POLLIN, 0});
  const uint64_t now_ns = os::monotonic_ns();
  const uint64_t wait_ns =
      deadline_ns <= now_ns ? 0 : std::min(kPollInterval_ns, deadline_ns - now_ns);
  const timespec timeout{0, static_cast<long>(wait_ns)};
  ::ppoll(entries.data(), entries.size(), &timeout, nullptr);
}

bool Recorder::is_time_to_stop(const Ends& ends, uint64_t deadline_ns, RunResult& result) {
  while (const auto signal = signals_.take()) {
    if (ends.child == nullptr || ++interrupts_ > 1) {
      result.reason = StopReason::Signal;
      result.signal = signal->number;
      signals_.let_next_one_kill();
      return true;
    }
    // A ^C of the terminal has reached the command already; anything else was meant for it too.
    if (!signal->is_from_terminal) ::kill(ends.child->pid(), signal->number);
  }
  if (all_ended(ends.pidfds)) {
    result.reason = StopReason::TargetEnded;
    return true;
  }
  if (os::monotonic_ns() >= deadline_ns) {
    result.reason = StopReason::DurationOver;
    return true;
  }
  return false;
}

void Recorder::fill_in(RunFigures& figures, const Recording& recording, FinishedFigures finished,
                       const Target& target) const {
  figures.sample = recording.figures();
  figures.sampler = sampler_.stats();
  figures.setup = sampler_.setup();
  figures.unwinder = recording.unwinder_stats();
  figures.samples_written = finished.samples_written;
  figures.idle_markers_written = finished.idle_markers_written;
  figures.chunks_written = finished.chunks_written;
  figures.chunks_too_small = finished.chunks_too_small;
  figures.write_errors = std::move(finished.write_errors);
  figures.hottest = std::move(finished.hottest);
  figures.image_problems = target.images.problems();
  // PERF_RECORD_LOST does not say what was lost; samples are by far the largest records.
  figures.sample.loss(Loss::RingFull) = figures.sampler.lost_samples + figures.sampler.lost_records;
  figures.sample.loss(Loss::Undecodable) = figures.sampler.undecodable_samples;
  figures.sample.loss(Loss::Duplicate) = figures.sampler.duplicate_samples;
  figures.sample.loss(Loss::OutsideProcess) = figures.sampler.outside_samples;
  figures.sample.loss(Loss::ChunkTooSmall) = finished.samples_too_small;
  figures.sample.loss(Loss::ChunkNotWritten) = finished.samples_not_written;
  figures.threads = target.processes.thread_count();
  figures.processes = target.processes.process_count();
  figures.images = target.images.size();
  figures.requested_hz = options_.frequency_hz;
  figures.profiler_cpu_s = os::own_cpu_seconds();
  figures.profiler_peak_rss_bytes = os::own_peak_rss_bytes();
}

}  // namespace sentry_prof::recorder
