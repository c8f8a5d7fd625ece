#include "cli/record_command.h"

#include "base/ids.h"
#include "base/path.h"
#include "base/utf8.h"
#include "cli/chunk_files.h"
#include "cli/exit_code.h"
#include "cli/live_line.h"
#include "cli/message.h"
#include "cli/profile_session.h"
#include "cli/record_end.h"
#include "cli/record_outputs.h"
#include "cli/run_report.h"
#include "os/errors.h"
#include "os/file.h"
#include "os/process.h"
#include "os/signals.h"
#include "recorder/recorder.h"
#include "recorder/replay.h"
#include "sampling/perf_open.h"
#include "sampling/perf_sampler.h"
#include "target/launch.h"
#include "target/proc.h"
#include "target/process_files.h"
#include "target/target_files.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

// What people know the process by: its comm, and the executable's name only where comm is that name
// cut off (the kernel keeps 15 bytes), since a file may have several names.
std::string name_of_process(int pid, const std::string& executable) {
  constexpr size_t kComm_bytes = 15;
  const auto comm = os::read_small_file(fmt::format("/proc/{}/comm", pid), 4096);
  std::string name = comm ? comm->substr(0, comm->find('\n')) : "";
  const std::string file_name(base_name(executable));
  if (name.empty() || (name.size() == kComm_bytes && file_name.starts_with(name))) name = file_name;
  for (char& c : name) {
    if (c == '/' || static_cast<unsigned char>(c) < ' ') c = '_';
  }
  return name.empty() ? "process" : printable_utf8(name);
}

using SharedFiles = std::shared_ptr<target::TargetFiles>;

// `main_executable` is empty where the recorder is to find out by itself; `raw_log` may be null.
recorder::RecorderOptions recorder_options(const RecordOptions& options,
                                           const std::string& main_executable,
                                           recorder::RawLogWriter* raw_log,
                                           const SharedFiles& files) {
  recorder::RecorderOptions result;
  result.duration_s = options.duration_s;
  result.chunk_ns = chunk_ns(options);
  result.max_chunk_json_bytes = kMaxChunkJson_bytes;
  result.frequency_hz = options.frequency_hz.value_or(kDefaultFrequency_hz);
  result.follows_children = !options.no_children;
  result.session = make_session(options);
  result.main_executable = main_executable;
  result.raw_log = raw_log;
  result.files = files;
  return result;
}

sampling::SamplerOptions sampler_options(const RecordOptions& options) {
  sampling::SamplerOptions result;
  result.frequency_hz = options.frequency_hz.value_or(kDefaultFrequency_hz);
  result.event = options.event;
  result.stack_bytes = options.stack_bytes;
  result.follow_children = !options.no_children;
  result.wants_outer_stacks = !options.no_bpf;
  return result;
}

// The recorder of running processes or of a command, and what it stands on.
struct LiveRecorder {
  LiveRecorder(const RecordOptions& options, const std::string& main_executable, int command_pid,
               RecordOutputs& outputs, const SharedFiles& files, const os::SignalSet& signals)
      : sampler(sampling::make_perf_sampler(sampler_options(options), outputs.raw_log.get())),
        line(!options.is_quiet, command_pid),
        recorder(recorder_options(options, main_executable, outputs.raw_log.get(), files), *sampler,
                 signals, outputs.chunks,
                 [this](const recorder::Progress& progress) { line.show(progress); }) {}
  LiveRecorder(const LiveRecorder&) = delete;  // the recorder refers to the others
  LiveRecorder& operator=(const LiveRecorder&) = delete;

  std::unique_ptr<sampling::Sampler> sampler;
  LiveLine line;
  recorder::Recorder recorder;
};

// Says why there are no outputs. What was asked for wrongly, and a DSN that is missing, is the
// user's to mend; the code of all else is `otherwise`.
int complain_of(const OutputFailure& failure, ExitCode otherwise) {
  complain(failure.error.message);
  const bool is_wrong_usage =
      failure.error.code == ErrorCode::InvalidArgument ||
      (failure.stage == OutputStage::Upload && failure.error.code == ErrorCode::NotFound);
  return is_wrong_usage ? kWrongUsage : otherwise;
}

// The kernel lowers its limit by itself where interrupts took too long: what recorded yesterday
// does so today. Who names a frequency gets that, or is told why not.
void keep_default_below_limit(RecordOptions& options) {
  const auto limit_hz = sampling::max_sample_rate_hz();
  if (options.frequency_hz || !limit_hz || *limit_hz >= kDefaultFrequency_hz) return;
  options.frequency_hz = std::max(*limit_hz, uint32_t{1});
  complain(
      fmt::format("sampling at {} Hz, not at {}: kernel.perf_event_max_sample_rate allows no "
                  "more. Raise it with sysctl",
                  *options.frequency_hz, kDefaultFrequency_hz));
}

// Why one of several can be left out without losing anything that could be recorded; empty if it
// cannot.
std::string why_left_out(int pid, const Error& refusal, const std::vector<int>& pids) {
  if (target::is_of_ended_process(refusal)) return fmt::format("there is no process {}", pid);
  if (refusal.code == ErrorCode::Unsupported)
    return fmt::format("{} is a thread of the kernel", pid);
  const auto process = target::process_of_thread(pid);
  if (!process || *process == pid || std::ranges::find(pids, *process) == pids.end()) return "";
  return fmt::format("{} is a thread of process {}", pid, *process);
}

// Of several processes some may have ended meanwhile (`pgrep`), or are none (`ps -eL`, `pgrep .`).
// If no other is left, all are given back: the recorder tells of it.
std::vector<int> those_to_record(const std::vector<int>& pids) {
  std::vector<int> left;
  std::vector<std::string> notes;
  for (const int pid : pids) {
    const auto ok = target::check_is_profilable(pid, pids);
    std::string note = ok ? "" : why_left_out(pid, ok.error(), pids);
    if (note.empty()) {
      left.push_back(pid);
    } else {
      notes.push_back(std::move(note));
    }
  }
  if (left.empty()) return pids;
  for (const std::string& note : notes) complain(note + ": only the others are recorded");
  return left;
}

int record_attached(const RecordOptions& options, const SharedFiles& files,
                    const os::SignalSet& signals) {
  const std::string executable = target::executable_of(static_cast<uint32_t>(options.pids.front()));
  const std::string path =
      resolve_output(options.output, name_of_process(options.pids.front(), executable),
                     options.pids.front(), options.format);
  const auto outputs = open_outputs(options, path, *files, signals);
  if (!outputs) return complain_of(outputs.error(), kInputOutput);
  LiveRecorder live(options, executable, LiveLine::kNoCommand, **outputs, files, signals);
  auto run = live.recorder.attach(options.pids);
  live.line.clear();
  if (!run) {
    give_up((*outputs)->upload.get(), signals, run.error());
    return kAnswerIsNo;
  }
  run->figures.target_is_stopped =
      std::all_of(options.pids.begin(), options.pids.end(), os::is_stopped);
  const RecordEnd end = leave(options, *run, **outputs, signals, true, {});
  if (!end.is_written) return kInputOutput;
  files->end();  // dying leaves nobody to wait for its processes
  if (run->reason == recorder::StopReason::Signal) os::die_by_signal(run->signal);
  if (end.taken) os::die_by_signal(end.taken->number);
  if (end.sent.exit_code != kDone) return end.sent.exit_code;
  return run->figures.chunks_written > 0 ? kDone : kAnswerIsNo;
}

// What the command's end is passed on as. Does not return where a ^C on the terminal ended it:
// then that ends us, too, or a shell's loop around us would go on.
int pass_on_end(int wait_status, const recorder::Recorder& recorder) {
  if (!WIFSIGNALED(wait_status)) return WEXITSTATUS(wait_status);
  const int signal = WTERMSIG(wait_status);
  if (signal == SIGINT && recorder.is_interrupted_at_terminal()) os::die_by_signal(SIGINT);
  return kSignalBase + signal;
}

// As shells do, which see no signal here, but the status; and as they do not of what the user or a
// reader that left has ended.
void tell_of_signal(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return;
  const int signal = WTERMSIG(wait_status);
  if (signal == SIGINT || signal == SIGPIPE) return;
  complain(fmt::format("the command was ended by signal {} ({}{})", signal, ::strsignal(signal),
                       WCOREDUMP(wait_status) ? ", core dumped" : ""));
}

int exec_failure(const std::string& command, int exec_errno) {
  if (exec_errno == ENOENT && command.find('/') != command.npos &&
      ::access(command.c_str(), F_OK) == 0) {
    complain(command + ": the interpreter or loader it names was not found");
    return kNotExecutable;
  }
  complain(
      fmt::format("{}: {}", command,
                  exec_errno == ENOENT ? "command not found" : os::describe_errno(exec_errno)));
  return exec_errno == ENOENT ? kNotFound : kNotExecutable;
}

// Why there is no recording. ^C reaches the command, too, and may have ended it before its exec:
// that is its end like any other, and not our failure.
int not_recorded(const Error& error, target::LaunchedChild& child, RecordUpload* upload,
                 const recorder::Recorder& recorder, const os::SignalSet& signals) {
  give_up(upload, signals, error);
  if (error.code != ErrorCode::Gone) return kOwnFailure;
  const auto status = child.wait();
  return status ? pass_on_end(*status, recorder) : kOwnFailure;
}

// The recording is over, the command maybe not. False if something was not written, nor kept to be
// sent later.
bool leave_launched(const RecordOptions& options, recorder::RunResult& run,
                    const RecordOutputs& outputs, const target::LaunchedChild& child,
                    const recorder::Recorder& recorder, const os::SignalSet& signals) {
  const bool goes_on = run.reason != recorder::StopReason::TargetEnded && !child.has_ended();
  // Nobody is left to pass signals on to.
  const bool is_killable = run.reason == recorder::StopReason::Signal || child.has_ended();
  if (goes_on && !options.is_quiet) {
    complain(fmt::format("the recording is over, the command goes on (process {})", child.pid()));
  }
  const RecordEnd end =
      leave(options, run, outputs, signals, is_killable, [&] { recorder.pass_signals_through(); });
  if (end.taken) os::die_by_signal(end.taken->number);
  return end.is_written && end.sent.is_safe;
}

int record_launched(const RecordOptions& options, const SharedFiles& files,
                    const os::SignalSet& signals) {
  auto child = target::LaunchedChild::start(options.command);
  if (!child) {
    complain(child.error().message);
    return kOwnFailure;
  }
  const std::string path =
      resolve_output(options.output, std::string(base_name(options.command.front())), child->pid(),
                     options.format);
  const auto outputs = open_outputs(options, path, *files, signals);
  if (!outputs) return complain_of(outputs.error(), kOwnFailure);
  LiveRecorder live(options, "", child->pid(), **outputs, files, signals);
  int exec_errno = 0;
  auto run = live.recorder.launch(*child, exec_errno);
  live.line.clear();
  if (exec_errno != 0) return exec_failure(options.command.front(), exec_errno);
  if (!run) {
    return not_recorded(run.error(), *child, (*outputs)->upload.get(), live.recorder, signals);
  }
  files->end();
  run->figures.target_is_stopped = !child->has_ended() && os::is_stopped(child->pid());
  if (run->reason == recorder::StopReason::TargetEnded && !options.no_children) {
    run->figures.command_cpu_ns = child->cpu_time_ns();
  }
  const bool is_written = leave_launched(options, *run, **outputs, *child, live.recorder, signals);
  const auto status = live.recorder.wait_for_end_of(*child);
  if (!status) complain(status.error().message);
  if (status && !options.is_quiet) tell_of_signal(*status);
  if (!is_written || !status) return kOwnFailure;
  return pass_on_end(*status, live.recorder);
}

int record_replayed(const RecordOptions& options) {
  // All of it is held in memory; a minute of full stacks of one busy thread is some 400 MB.
  constexpr size_t kMaxRawLog_bytes = size_t{4} << 30;
  const auto bytes = os::read_small_file(options.replay, kMaxRawLog_bytes);
  if (!bytes) {
    complain(bytes.error().message);
    return kInputOutput;
  }
  auto log = recorder::read_raw_log(std::as_bytes(std::span(*bytes)));
  if (!log) {
    complain(options.replay + ": " + log.error().message);
    return kInputOutput;
  }
  const std::string path = resolve_output(options.output, "replay",
                                          static_cast<int>(log->session.main_pid), options.format);
  const OutputDirectory directory(options);
  if (auto ok = check_outputs(options, path); !ok) {
    complain(ok.error().message);
    return kInputOutput;
  }
  // The log may be of the other format, whose chunks may be longer.
  log->session.chunk_ns =
      std::min(log->session.chunk_ns, static_cast<uint64_t>(longest_chunk_s(options.format) * 1e9));
  log->session.max_chunk_json_bytes =
      std::min(log->session.max_chunk_json_bytes, kMaxChunkJson_bytes);
  ChunkFiles files(path, options.format, options.output);
  const auto figures = recorder::replay(*log, random_uuid_v4(), files);
  if (!figures) {
    complain(options.replay + ": " + figures.error().message);
    return kAnswerIsNo;
  }
  const bool is_reported = report(options, *figures, files, {});
  if (!write_summary(options, *figures, files) || !is_reported) return kInputOutput;
  return figures->chunks_written > 0 ? kDone : kAnswerIsNo;
}

}  // namespace

int record_command(RecordOptions options) {
  if (auto ok = complete(options); !ok) {
    complain(ok.error().message + ". Try: sentry-prof record --help");
    return kWrongUsage;
  }
  if (!options.replay.empty()) {
    os::make_broken_pipe_an_error();
    return record_replayed(options);
  }
  keep_default_below_limit(options);
  const auto signals = os::SignalSet::install();
  if (!signals) {
    complain(signals.error().message);
    return options.command.empty() ? kInputOutput : kOwnFailure;
  }
  // Behind the signals, which its processes leave to us; before anything of the target's is looked
  // at.
  const auto files = target::TargetFiles::start();
  if (!files) {
    complain(files.error().message);
    return options.command.empty() ? kInputOutput : kOwnFailure;
  }
  if (!options.command.empty()) return record_launched(options, *files, *signals);
  options.pids = those_to_record(options.pids);
  return record_attached(options, *files, *signals);
}

}  // namespace sentry_prof::cli
