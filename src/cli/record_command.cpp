#include "cli/record_command.h"

#include "base/ids.h"
#include "base/path.h"
#include "base/utf8.h"
#include "cli/chunk_files.h"
#include "cli/chunk_outputs.h"
#include "cli/exit_code.h"
#include "cli/live_line.h"
#include "cli/message.h"
#include "cli/record_upload.h"
#include "os/file.h"
#include "os/process.h"
#include "os/signals.h"
#include "os/standard_streams.h"
#include "os/system_info.h"
#include "recorder/raw_log_writer.h"
#include "recorder/recorder.h"
#include "recorder/replay.h"
#include "recorder/summary.h"
#include "sampling/perf_sampler.h"
#include "sentry_prof/limits.h"
#include "target/launch.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

// The builder's estimate is an upper bound; a fifth below the server's limit leaves room for what
// it does not know yet (symbol names).
constexpr uint64_t kMaxChunkJson_bytes = limits::kMaxItem_bytes / 5 * 4;

// The executable of a running process; empty where the link may not be read.
std::string executable_of(int pid) {
  std::string path(4096, '\0');
  const ssize_t length =
      ::readlink(fmt::format("/proc/{}/exe", pid).c_str(), path.data(), path.size());
  path.resize(length < 0 ? 0 : static_cast<size_t>(length));
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

// What people know the process by: its comm, and the executable's name only where comm is that name
// cut off (the kernel keeps 15 bytes), since a file may have several names.
std::string name_of_process(int pid, const std::string& executable) {
  constexpr size_t kCommBytes = 15;
  const auto comm = os::read_small_file(fmt::format("/proc/{}/comm", pid), 4096);
  std::string name = comm ? comm->substr(0, comm->find('\n')) : "";
  const std::string file_name(base_name(executable));
  if (name.empty() || (name.size() == kCommBytes && file_name.starts_with(name))) name = file_name;
  for (char& c : name) {
    if (c == '/' || static_cast<unsigned char>(c) < ' ') c = '_';
  }
  return name.empty() ? "process" : printable_utf8(name);
}

Session make_session(const RecordOptions& options) {
  const os::SystemInfo system = os::read_system_info();
  Session session;
  session.profiler_id = random_uuid_v4();
  session.platform = options.platform;
  session.release = options.release;
  session.environment = options.environment;
  session.transaction_name = options.transaction;
  session.sdk_name = "sentry-prof";
  session.sdk_version = SENTRY_PROF_VERSION;
  session.os_name = system.name;
  session.os_version = system.version;
  session.os_build = system.build;
  session.device_architecture = system.architecture;
  session.device_manufacturer = system.manufacturer;
  session.device_model = system.model;
  return session;
}

recorder::RecorderOptions recorder_options(const RecordOptions& options) {
  recorder::RecorderOptions result;
  result.duration_s = options.duration_s;
  result.chunk_ns =
      static_cast<uint64_t>(options.chunk_s.value_or(default_chunk_s(options.format)) * 1e9);
  result.max_chunk_json_bytes = kMaxChunkJson_bytes;
  result.frequency_hz = options.frequency_hz;
  result.session = make_session(options);
  return result;
}

sampling::SamplerOptions sampler_options(const RecordOptions& options) {
  sampling::SamplerOptions result;
  result.frequency_hz = options.frequency_hz;
  result.event = options.event;
  result.stack_bytes = options.stack_bytes;
  result.follow_children = !options.no_children;
  return result;
}

// The raw log that was asked for; null if none was.
Result<std::unique_ptr<recorder::RawLogWriter>> start_raw_log(const RecordOptions& options) {
  if (options.raw_log.empty()) return nullptr;
  return recorder::RawLogWriter::create(options.raw_log);
}

// False if it could not be written.
bool finish_raw_log(recorder::RawLogWriter* raw_log) {
  if (raw_log == nullptr) return true;
  const auto ok = raw_log->commit();
  if (!ok) complain(ok.error().message);
  return ok.has_value();
}

Result<void> write_summary(const RecordOptions& options, const std::string& json) {
  if (options.summary == "-") return write_to_stdout(json);
  auto file = os::AtomicFile::create(options.summary);
  if (!file) return tl::unexpected(file.error());
  if (auto ok = file->write(json); !ok) return ok;
  return file->commit();
}

// A directory that was made for the output; one that stays empty is removed again.
class OutputDirectory {
 public:
  explicit OutputDirectory(const RecordOptions& options) : path_(options.output) {
    is_new_ = path_.ends_with('/') && ::access(path_.c_str(), F_OK) != 0;
  }
  ~OutputDirectory() {
    if (is_new_) ::rmdir(path_.c_str());
  }
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

 private:
  std::string path_;
  bool is_new_ = false;
};

bool is_one_output(const std::string& path, const std::string& other) {
  return base_name(path) == base_name(other) && os::are_in_same_directory(path, other);
}

// A file that is written, or replayed, must not be replaced by another output of the same run.
Result<void> check_distinct(const RecordOptions& options, const std::string& path) {
  const auto clash = [](const std::string& option, const std::string& file, const char* other) {
    return fail(ErrorCode::InvalidArgument, option + " " + file + " is " + other + ", too");
  };
  const auto is_chunk = [&](const std::string& file) {
    return path != "-" &&
           is_chunk_path(std::string(base_name(path)), std::string(base_name(file))) &&
           os::are_in_same_directory(path, file);
  };
  const std::string summary = options.summary == "-" ? "" : options.summary;
  for (const auto& [option, file] : {std::pair<std::string, std::string>("--summary", summary),
                                     {"--raw-log", options.raw_log},
                                     {"--replay", options.replay}}) {
    if (!file.empty() && is_chunk(file)) return clash(option, file, "the name of a chunk's file");
  }
  for (const auto& [option, file] :
       {std::pair<std::string, std::string>("--raw-log", options.raw_log),
        {"--replay", options.replay}}) {
    if (file.empty()) continue;
    if (!summary.empty() && is_one_output(file, summary)) {
      return clash(option, file, "the file of --summary");
    }
  }
  if (options.replay.empty()) return {};
  if (path != "-" && os::is_same_file(options.replay, path)) {
    return clash("--replay", options.replay, "the file of --output");
  }
  if (!summary.empty() && os::is_same_file(options.replay, summary)) {
    return clash("--replay", options.replay, "the file of --summary");
  }
  return {};
}

bool writes_files(const RecordOptions& options) {
  return !options.upload || !options.output.empty();
}

// Null without --upload.
Result<std::unique_ptr<RecordUpload>> start_upload(const RecordOptions& options,
                                                   const std::string& path) {
  if (!options.upload) return nullptr;
  return RecordUpload::start(options, writes_files(options) && path != "-" ? path : "");
}

// Of a recording that failed: chunks may wait all the same.
void give_up(RecordUpload* upload, const os::SignalSet& signals, const Error& error) {
  complain(error.message);
  if (upload != nullptr) upload->finish(signals.fd(), true);
}

// Of a DSN that is missing or wrong: the user's to mend.
int exit_code_of(const Error& error) {
  return error.code == ErrorCode::InvalidArgument || error.code == ErrorCode::NotFound
             ? kWrongUsage
             : kInputOutput;
}

// Told before the recording begins, not after an hour of it.
Result<void> check_outputs(const RecordOptions& options, const std::string& path) {
  const bool uses_stdout = path == "-" || options.summary == "-";
  if (uses_stdout && !os::is_writable(STDOUT_FILENO)) {
    return fail(ErrorCode::Io, "standard output is closed, nothing can be written to it");
  }
  if (path != "-" && writes_files(options)) {
    if (options.output.ends_with('/')) {
      if (auto ok = os::make_directory(options.output); !ok) return ok;
    }
    if (auto ok = os::check_writable(path); !ok) return ok;
    if (os::others_can_replace(path)) {
      complain("warning: other users may write to the directory of " + path);
    }
  }
  if (auto ok = check_distinct(options, writes_files(options) ? path : "-"); !ok) return ok;
  if (!options.raw_log.empty()) {
    if (auto ok = os::check_writable(options.raw_log); !ok) return ok;
  }
  if (options.summary.empty() || options.summary == "-") return {};
  return os::check_writable(options.summary);
}

// Prints what the run was. False if chunks could not be written.
bool report(const RecordOptions& options, const recorder::RunFigures& figures,
            const ChunkFiles& files, const HalfWritten& half_written) {
  if (!options.is_quiet) {
    print(recorder::summary_text(figures, files.written(), options.is_verbose));
    const std::string left = writes_files(options) ? files.left_by_earlier_run() : "";
    if (!left.empty()) {
      print("  note      " + printable_utf8(left) + " is of an earlier recording\n");
    }
  }
  for (const std::string& error : figures.write_errors) complain(error);
  for (const auto& [chunks, what] : {std::pair(half_written.not_in_files, "uploaded only"),
                                     {half_written.not_uploaded, "written to files only"}}) {
    if (chunks == 0) continue;
    complain(fmt::format("chunks {}: {}. The first: {}", what, chunks, half_written.first_error));
  }
  return figures.write_errors.empty() && half_written.first_error.empty();
}

// False if it was asked for and could not be written.
bool write_summary_of(const RecordOptions& options, const recorder::RunFigures& figures,
                      const ChunkFiles& files) {
  if (options.summary.empty()) return true;
  const auto ok = write_summary(options, recorder::summary_json(figures, files.written()));
  if (!ok) complain(ok.error().message);
  return ok.has_value();
}

// What a recording leaves behind.
struct Leavings {
  const ChunkFiles& files;
  const ChunkOutputs& outputs;
  recorder::RawLogWriter* raw_log;  // may be null, as `upload`
  RecordUpload* upload;
};

struct LeavingsEnd {
  bool is_written = true;
  UploadEnd sent;
  std::optional<os::SignalSet::Taken> taken;  // while the rest was sent
};

// `is_killable`: outside of uploads the next signal ends the process, since standard output may be
// a pipe that nobody reads.
LeavingsEnd leave(const RecordOptions& options, recorder::RunResult& run, const Leavings& leavings,
                  const os::SignalSet& signals, bool is_killable) {
  LeavingsEnd end;
  if (is_killable) signals.let_next_one_kill();
  end.is_written = finish_raw_log(leavings.raw_log);
  end.is_written = report(options, run.figures, leavings.files, leavings.outputs.half_written()) &&
                   end.is_written;
  if (leavings.upload != nullptr) {
    signals.hold_again();
    end.sent = leavings.upload->finish(signals.fd(), run.reason == recorder::StopReason::Signal);
    run.figures.uploads = end.sent.figures;
    if (is_killable) {
      end.taken = signals.take();
      signals.let_next_one_kill();
    }
  }
  end.is_written = write_summary_of(options, run.figures, leavings.files) && end.is_written;
  return end;
}

int record_attached(const RecordOptions& options, const os::SignalSet& signals) {
  const std::string executable = executable_of(options.pids.front());
  const std::string path =
      resolve_output(options.output, name_of_process(options.pids.front(), executable),
                     options.pids.front(), options.format);
  const OutputDirectory directory(options);
  if (auto ok = check_outputs(options, path); !ok) {
    complain(ok.error().message);
    return kInputOutput;
  }
  const auto raw_log = start_raw_log(options);
  if (!raw_log) {
    complain(raw_log.error().message);
    return kInputOutput;
  }
  const auto uploads = start_upload(options, path);
  if (!uploads) {
    complain(uploads.error().message);
    return exit_code_of(uploads.error());
  }
  ChunkFiles files(path, options.format);
  ChunkOutputs outputs(options.format, writes_files(options) ? &files : nullptr, uploads->get());
  const auto sampler = sampling::make_perf_sampler(sampler_options(options), raw_log->get());
  recorder::RecorderOptions recorder_opts = recorder_options(options);
  recorder_opts.main_executable = executable;
  recorder_opts.raw_log = raw_log->get();
  LiveLine line(!options.is_quiet);
  recorder::Recorder recorder(std::move(recorder_opts), *sampler, signals, outputs,
                              [&](const recorder::Progress& progress) { line.show(progress); });
  auto run = recorder.attach(options.pids);
  line.clear();
  if (!run) {
    give_up(uploads->get(), signals, run.error());
    return kAnswerIsNo;
  }
  run->figures.ran_as_root = ::geteuid() == 0;
  run->figures.target_is_stopped =
      std::all_of(options.pids.begin(), options.pids.end(), os::is_stopped);
  const LeavingsEnd end =
      leave(options, *run, {files, outputs, raw_log->get(), uploads->get()}, signals, true);
  if (!end.is_written) return kInputOutput;
  if (run->reason == recorder::StopReason::Signal) os::die_by_signal(run->signal);
  if (end.taken) os::die_by_signal(end.taken->number);
  if (end.sent.exit_code != kDone) return end.sent.exit_code;
  return run->figures.chunks_written > 0 ? kDone : kAnswerIsNo;
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? kSignalBase + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
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

bool has_ended(const target::LaunchedChild& child) {
  pollfd end{child.pidfd().get(), POLLIN, 0};
  return ::poll(&end, 1, 0) == 1;
}

int record_launched(const RecordOptions& options, const os::SignalSet& signals) {
  auto child = target::LaunchedChild::start(options.command);
  if (!child) {
    complain(child.error().message);
    return kOwnFailure;
  }
  const std::string path =
      resolve_output(options.output, std::string(base_name(options.command.front())), child->pid(),
                     options.format);
  const OutputDirectory directory(options);
  if (auto ok = check_outputs(options, path); !ok) {
    complain(ok.error().message);
    return kOwnFailure;
  }
  const auto raw_log = start_raw_log(options);
  if (!raw_log) {
    complain(raw_log.error().message);
    return kOwnFailure;
  }
  const auto uploads = start_upload(options, path);
  if (!uploads) {
    complain(uploads.error().message);
    return exit_code_of(uploads.error()) == kWrongUsage ? kWrongUsage : kOwnFailure;
  }
  ChunkFiles files(path, options.format);
  ChunkOutputs outputs(options.format, writes_files(options) ? &files : nullptr, uploads->get());
  const auto sampler = sampling::make_perf_sampler(sampler_options(options), raw_log->get());
  recorder::RecorderOptions recorder_opts = recorder_options(options);
  recorder_opts.raw_log = raw_log->get();
  LiveLine line(!options.is_quiet, child->pid());
  recorder::Recorder recorder(std::move(recorder_opts), *sampler, signals, outputs,
                              [&](const recorder::Progress& progress) { line.show(progress); });
  int exec_errno = 0;
  auto run = recorder.launch(*child, exec_errno);
  line.clear();
  if (exec_errno != 0) return exec_failure(options.command.front(), exec_errno);
  if (!run) {
    give_up(uploads->get(), signals, run.error());
    return kOwnFailure;
  }
  run->figures.ran_as_root = ::geteuid() == 0;
  const bool goes_on = run->reason != recorder::StopReason::TargetEnded && !has_ended(*child);
  // Nobody is left to pass signals on to.
  const bool is_killable = run->reason == recorder::StopReason::Signal || has_ended(*child);
  if (goes_on && !options.is_quiet) {
    complain(fmt::format("the recording is over, the command goes on (process {})", child->pid()));
  }
  const LeavingsEnd end =
      leave(options, *run, {files, outputs, raw_log->get(), uploads->get()}, signals, is_killable);
  if (end.taken) os::die_by_signal(end.taken->number);
  const bool is_written = end.is_written && end.sent.is_safe;
  const auto status = recorder.wait_for_end_of(*child);
  if (!is_written || !status) return kOwnFailure;
  return exit_code_of(*status);
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
  ChunkFiles files(path, options.format);
  const auto figures = recorder::replay(*log, random_uuid_v4(), files);
  if (!figures) {
    complain(options.replay + ": " + figures.error().message);
    return kAnswerIsNo;
  }
  const bool is_reported = report(options, *figures, files, {});
  if (!write_summary_of(options, *figures, files) || !is_reported) return kInputOutput;
  return figures->chunks_written > 0 ? kDone : kAnswerIsNo;
}

}  // namespace

int record_command(RecordOptions options) {
  if (auto ok = complete(options); !ok) {
    complain(ok.error().message + ". Try: sentry-prof record --help");
    return kWrongUsage;
  }
  if (!options.replay.empty()) {
    os::make_write_signals_errors();
    return record_replayed(options);
  }
  const auto signals = os::SignalSet::install();
  if (!signals) {
    complain(signals.error().message);
    return options.command.empty() ? kInputOutput : kOwnFailure;
  }
  return options.command.empty() ? record_attached(options, *signals)
                                 : record_launched(options, *signals);
}

}  // namespace sentry_prof::cli
