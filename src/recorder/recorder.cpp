#include "recorder/recorder.h"

#include "os/clock.h"
#include "os/errors.h"
#include "os/limits.h"
#include "os/priority.h"
#include "os/privileges.h"
#include "os/process.h"
#include "recorder/executable_name.h"
#include "recorder/left_out_processes.h"
#include "recorder/poll_pace.h"
#include "recorder/register_mapping.h"
#include "recorder/run_figures.h"
#include "sampling/file_budget.h"
#include "target/proc.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

namespace sentry_prof::recorder {

namespace {

// Only what is older than this is sure to have been handed on: what the sampler holds back, and
// four times as much again where a hypervisor stops the CPU that is writing a record.
constexpr uint64_t kSettled_ns = 5 * sampling::kPublishSlack_ns;
constexpr int kReapInterval_ms = 1000;
// Who is told to end and goes on for longer has answered the signal (a shell, a debugger), and ends
// of something else: supervisors kill after 10 s or more (docker stop).
constexpr uint64_t kUsualEnd_ns = 10'000'000'000;
constexpr uint64_t kUsualAttach_ns = 100'000'000;  // to 5,000 threads: 170 ms

// A process that has ended since has no maps any more; its samples say so themselves. But without
// the right to read maps no sample could be unwound.
Result<void> take_snapshot(int pid, target::ProcessTable& processes, RawLogWriter* raw_log) {
  auto snapshot = target::read_process(pid);
  if (raw_log != nullptr) raw_log->on_snapshot(snapshot);
  if (snapshot) {
    processes.on_snapshot(*snapshot);
    return {};
  }
  if (target::is_of_ended_process(snapshot.error())) return {};
  const bool is_refused = snapshot.error().code == ErrorCode::PermissionDenied;
  return fail(snapshot.error().code,
              snapshot.error().message + ". Without its maps no stack can be unwound" +
                  (is_refused ? ": " + os::how_to_get(os::kCapSysPtrace) : std::string()));
}

// Opens what the process has mapped, while nothing is sampled yet: in a container with a small
// share of the CPUs, or on a busy machine, a hundred libraries take longer than rings hold samples.
// take_snapshot(), which has to follow the begin of the records, finds them open. Events need
// files, too: the rest of those of a target that has so many is opened behind them.
void open_images(int pid, uint64_t most_images, target::ImageStore& images) {
  const auto mappings = target::read_mappings(pid);
  if (!mappings) return;
  for (const target::MappingFacts& mapping : *mappings) {
    if (images.images_seen() >= most_images) return;
    images.module_for(mapping);
  }
}

// Where a process cannot be held, besides that it has ended.
Error explain_refusal(Error error, size_t processes) {
  if (error.code != ErrorCode::LimitExceeded || processes == 1) return error;
  error.message += fmt::format(
      ". Each of the {} processes takes a descriptor, and each of their threads some. Raise the "
      "hard limit of open files (ulimit -n as root, LimitNOFILE= of a service)",
      processes);
  return error;
}

}  // namespace

Recorder::Recorder(RecorderOptions options, sampling::Sampler& sampler,
                   const os::SignalSet& signals, ChunkSink& sink,
                   std::function<void(const Progress&)> show_progress)
    : options_(std::move(options)),
      sampler_(sampler),
      signal_set_(signals),
      signals_(signals, nullptr),
      sink_(sink),
      show_progress_(std::move(show_progress)) {}

Result<RunResult> Recorder::attach(std::span<const int> pids) {
  // A descriptor of each process, until the sampler counts what it needs itself.
  const uint64_t file_limit = os::raise_open_file_limit(
      sampling::FileBudget(0, os::open_file_count()).limit_for(pids.size()));
  auto run = prepare();
  if (!run) return tl::unexpected(run.error());
  const auto living = hold_living(pids, **run);
  if (!living) return tl::unexpected(living.error());
  if (auto note = options_.follows_children ? note_of_children(*living) : ""; !note.empty()) {
    (*run)->notes.push_back(std::move(note));
  }
  for (int pid : *living) open_images(pid, file_limit / 4, (*run)->images);
  begin_ns_ = os::monotonic_ns();
  if (auto ok = sampler_.attach(*living); !ok) return tl::unexpected(ok.error());
  for (int pid : *living) {
    if (auto ok = take_snapshot(pid, (*run)->processes, options_.raw_log); !ok)
      return tl::unexpected(ok.error());
  }
  return record(**run, static_cast<uint32_t>(living->front()));
}

// Those of the processes that are there; of several some may have ended meanwhile.
Result<std::vector<int>> Recorder::hold_living(std::span<const int> pids, Run& run) {
  std::vector<int> living;
  Error gone{ErrorCode::Gone, {}};
  for (int pid : pids) {
    auto pidfd = hold(pid, pids);
    if (pidfd) {
      living.push_back(pid);
      run.attached_pids.push_back(pid);
      run.pidfds.push_back(pidfd->get());
      run.own_pidfds.push_back(std::move(*pidfd));
    } else if (target::is_of_ended_process(pidfd.error())) {
      run.notes.push_back(fmt::format("process {} ended before it could be recorded", pid));
      gone = std::move(pidfd.error());
    } else {
      return tl::unexpected(explain_refusal(std::move(pidfd.error()), pids.size()));
    }
  }
  if (living.empty()) return tl::unexpected(std::move(gone));
  return living;
}

Result<os::Fd> Recorder::hold(int pid, std::span<const int> pids) {
  if (auto ok = target::check_is_profilable(pid, pids); !ok) return tl::unexpected(ok.error());
  return os::open_pidfd(pid);
}

Result<RunResult> Recorder::launch(target::LaunchedChild& child, int& exec_errno) {
  auto run = prepare();
  if (!run) return tl::unexpected(run.error());
  signals_ = SignalPolicy(signal_set_, &child);
  (*run)->pidfds.push_back(child.pidfd().get());
  (*run)->launched_pid = child.pid();
  begin_ns_ = os::monotonic_ns();
  if (auto ok = sampler_.attach_before_exec(child.pid()); !ok) return tl::unexpected(ok.error());
  signals_.before_exec();
  auto released = child.release();
  if (!released) return tl::unexpected(released.error());
  exec_errno = *released;
  if (exec_errno != 0) {
    return fail(exec_errno == ENOENT ? ErrorCode::NotFound : ErrorCode::PermissionDenied,
                os::describe_errno(exec_errno));
  }
  return record(**run, static_cast<uint32_t>(child.pid()));
}

Result<int> Recorder::wait_for_end_of(target::LaunchedChild& child) {
  while (!child.has_ended()) {
    std::array<pollfd, 3> entries = {{{signal_set_.fd(), POLLIN, 0},
                                      {signal_set_.command_fd(), POLLIN, 0},
                                      {child.pidfd().get(), POLLIN, 0}}};
    ::poll(entries.data(), entries.size(), os::is_init() ? kReapInterval_ms : -1);
    if (os::is_init()) os::reap_orphans(child.pid());
    signals_.let_repeats_pass();
  }
  signals_.while_finishing();  // what ended it may have come to us, too: pass_on_end()
  return child.wait();
}

// Everything that can fail before the target notices anything.
Result<std::unique_ptr<Recorder::Run>> Recorder::prepare() {
  if (auto ok = target::check_proc(); !ok) return tl::unexpected(std::move(ok.error()));
  auto run = std::make_unique<Run>(make_opener());
  wall_clock_ = WallClock();
  auto finisher = ChunkFinisher::start(sink_, run->priority.previous(),
                                       [files = options_.files] { files->close_unneeded(); });
  if (!finisher) return tl::unexpected(finisher.error());
  run->finisher = std::move(*finisher);
  return run;
}

std::unique_ptr<target::ImageOpener> Recorder::make_opener() const {
  auto opener = options_.files->make_opener();
  return options_.raw_log == nullptr ? std::move(opener)
                                     : options_.raw_log->wrap(std::move(opener));
}

void Recorder::log_session(uint32_t main_pid) const {
  RawSession session;
  session.arch = static_cast<uint8_t>(native_arch());
  session.setup = sampler_.setup();
  session.frequency_hz = options_.frequency_hz;
  session.chunk_ns = options_.chunk_ns;
  session.max_chunk_json_bytes = options_.max_chunk_json_bytes;
  session.begin_ns = begin_ns_;
  session.clock = wall_clock_.anchor();
  session.main_pid = main_pid;
  session.main_executable = options_.main_executable;
  session.texts = options_.session;
  options_.raw_log->on_session(session);
}

RecordingOptions Recorder::recording_options(uint32_t main_pid,
                                             os::ProcessMemoryReader& memory) const {
  RecordingOptions options;
  options.chunk_ns = options_.chunk_ns;
  options.first_chunk_slack_ns = first_chunk_slack_ns(options_.chunk_ns);
  options.max_chunk_json_bytes = options_.max_chunk_json_bytes;
  options.frequency_hz = options_.frequency_hz;
  options.register_mask = sampler_.setup().register_mask;
  options.session = options_.session;
  options.clock = wall_clock_.anchor();
  options.main_pid = main_pid;
  options.main_executable = options_.main_executable;
  options.name_executable = [files = options_.files](const std::string& executable,
                                                     const std::string& comm) {
    return executable_name(executable, comm, [&](const std::string& link) {
      return files->is_same_file(link, executable);
    });
  };
  options.reread_process = [raw_log = options_.raw_log](uint32_t pid) {
    auto snapshot = target::read_process(static_cast<int>(pid));
    if (raw_log != nullptr) raw_log->on_reread(snapshot);
    return snapshot;
  };
  options.is_gone = [](uint32_t pid) { return os::is_gone(static_cast<pid_t>(pid)); };
  options.find_jit_map = [files = options_.files](uint32_t pid, uint64_t program_begin_ns) {
    return files->find_jit_map(pid, program_begin_ns);
  };
  if (sampler_.setup().copies_outer_stacks) {
    options.follow_outer_stack = [this](uint32_t pid, uint32_t tid, uint64_t stack_end) {
      sampler_.follow_outer_stack(pid, tid, stack_end);
    };
  }
  options.read_memory = [&memory, raw_log = options_.raw_log](const MemoryRequest& request,
                                                              std::span<os::MemoryRange> ranges) {
    if (!is_too_late(request, os::monotonic_ns())) {
      memory.read(static_cast<pid_t>(request.pid), ranges);
    }
    const uint64_t now_ns = os::monotonic_ns();
    if (raw_log != nullptr) raw_log->on_memory(now_ns, ranges);
    return now_ns;
  };
  return options;
}

void Recorder::wait_for_room(ChunkFinisher& finisher) {
  while (!finisher.has_room_within(kPollInterval_ns)) signals_.while_finishing();
}

RunResult Recorder::record(Run& run, uint32_t main_pid) {
  os::ProcessMemoryReader memory;
  RecordingOptions options = recording_options(main_pid, memory);
  if (options_.raw_log != nullptr) log_session(main_pid);
  // Not on the stack, of which `ulimit -s` may leave us 64 KiB.
  const auto made = std::make_unique<Recording>(std::move(options), run.processes, run.images,
                                                *run.finisher, begin_ns_);
  Recording& recording = *made;

  RunResult result;
  result.reason = loop(recording, run);
  result.signal = signals_.ending_signal();
  sink_.on_recording_end();
  sampler_.stop();
  signals_.while_finishing();  // what comes from now on is not taken for a repeat for long
  const uint64_t end_ns = os::monotonic_ns();
  // Nothing more is recorded: the last chunks, of which the last drain may end one, can wait for
  // the others.
  wait_for_room(*run.finisher);
  sampler_.drain(recording, true);
  signals_.while_finishing();
  wait_for_room(*run.finisher);
  recording.finish(end_ns);
  do {
    signals_.while_finishing();
  } while (!run.finisher->is_finished_within(kPollInterval_ns));
  signals_.let_repeats_pass();
  result.figures.sampler = sampler_.stats();
  result.figures.setup = sampler_.setup();
  result.figures.requested_hz = options_.frequency_hz;
  // Lost records may be those of threads that live.
  if (result.figures.sampler.lost_records == 0) {
    if (auto note = note_of_escaped(run.processes, living_pids(run)); !note.empty())
      run.notes.push_back(std::move(note));
  }
  if (result.reason == StopReason::TargetEnded) {
    if (auto note = note_of_left(run.processes); !note.empty())
      run.notes.push_back(std::move(note));
  }
  result.figures.notes = std::move(run.notes);
  fill_in(result.figures, recording, run.images, run.processes, *run.finisher);
  if (options_.raw_log != nullptr) options_.raw_log->on_end({end_ns, sampler_.stats()});
  result.figures.memory_reads_given_up = memory.reads_given_up();
  result.figures.file_requests_given_up = options_.files->requests_given_up();
  result.figures.duration_s = static_cast<double>(end_ns - begin_ns_) / 1e9;
  if (result.signal == 0 && signals_.ending_signal() != 0) {
    result.signal = signals_.ending_signal();
    result.reason = StopReason::Signal;
  }
  const auto told_ns = signals_.passed_on_at_ns();
  const bool has_ended_of_it = told_ns && end_ns - std::min(end_ns, *told_ns) < kUsualEnd_ns;
  result.was_end_asked_for = result.reason == StopReason::Signal || has_ended_of_it;
  return result;
}

// Of those that were attached to.
std::vector<int> Recorder::living_pids(const Run& run) {
  std::vector<int> pids;
  for (size_t i = 0; i < run.attached_pids.size(); ++i) {
    if (!os::is_readable(run.own_pidfds[i].get())) pids.push_back(run.attached_pids[i]);
  }
  return pids;
}

// So that what is recorded after the wall clock was set, or the machine slept, has the right time.
void Recorder::follow_wall_clock(Recording& recording, uint64_t time_ns) {
  if (!wall_clock_.has_stepped()) return;
  recording.on_clock_step(time_ns, wall_clock_.anchor());
  if (options_.raw_log != nullptr) options_.raw_log->on_clock_step(time_ns, wall_clock_.anchor());
}

// From when the chunks begin on, but for attaching to thousands of threads, which takes a while.
uint64_t Recorder::end_of(double duration_s) const {
  const auto duration_ns = static_cast<uint64_t>(duration_s * 1e9);
  const uint64_t attach_ns = std::min(kUsualAttach_ns, duration_ns / 10);
  return std::max(begin_ns_, os::monotonic_ns() - attach_ns) + duration_ns;
}

StopReason Recorder::loop(Recording& recording, const Run& run) {
  const uint64_t deadline_ns = options_.duration_s ? end_of(*options_.duration_s) : UINT64_MAX;
  PollPace pace(begin_ns_);
  for (;;) {
    wait_for_events(run, deadline_ns, pace.interval_ns());
    if (os::is_init()) os::reap_orphans(run.launched_pid);
    const auto reason = reason_to_stop(run, deadline_ns);
    if (reason) return *reason;
    const uint64_t now_ns = os::monotonic_ns();
    sampler_.drain(recording, false);
    pace.on_drained(now_ns, recording.figures().samples, recording.figures().cut_copies);
    recording.on_time(now_ns - kSettled_ns);
    if (options_.raw_log != nullptr) options_.raw_log->on_time(now_ns - kSettled_ns);
    follow_wall_clock(recording, now_ns - kSettled_ns);
    show_progress_({static_cast<double>(now_ns - begin_ns_) / 1e9, recording.figures().samples,
                    sampler_.stats().lost_samples, run.processes.thread_count()});
  }
}

void Recorder::wait_for_events(const Run& run, uint64_t deadline_ns, uint64_t interval_ns) const {
  std::vector<pollfd> entries = {{signal_set_.fd(), POLLIN, 0},
                                 {signal_set_.command_fd(), POLLIN, 0}};
  for (int fd : run.pidfds) {
    // Of several targets those that have ended stay readable for ever.
    if (run.pidfds.size() == 1 || !os::is_readable(fd)) entries.push_back({fd, POLLIN, 0});
  }
  for (int fd : sampler_.poll_fds()) entries.push_back({fd, POLLIN, 0});
  const uint64_t now_ns = os::monotonic_ns();
  const uint64_t wait_ns = deadline_ns <= now_ns ? 0 : std::min(interval_ns, deadline_ns - now_ns);
  const timespec timeout{0, static_cast<long>(wait_ns)};
  ::ppoll(entries.data(), entries.size(), &timeout, nullptr);
}

std::optional<StopReason> Recorder::reason_to_stop(const Run& run, uint64_t deadline_ns) {
  if (signals_.ends_recording()) return StopReason::Signal;
  if (std::ranges::all_of(run.pidfds, os::is_readable)) return StopReason::TargetEnded;
  if (os::monotonic_ns() >= deadline_ns) return StopReason::DurationOver;
  if (run.finisher->sink_is_broken()) return StopReason::OutputBroken;
  return std::nullopt;
}

}  // namespace sentry_prof::recorder
