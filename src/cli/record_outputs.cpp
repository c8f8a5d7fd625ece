#include "cli/record_outputs.h"

#include "base/path.h"
#include "os/atomic_file.h"
#include "os/paths.h"
#include "target/process_files.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sentry_prof::cli {

namespace {

bool is_one_output(const std::string& path, const std::string& other) {
  return base_name(path) == base_name(other) && os::are_in_same_directory(path, other);
}

// A raw log that is written, or replayed, must not be replaced by another output of the same run.
Result<void> check_distinct(const RecordOptions& options, const std::string& path) {
  const auto clash = [](const std::string& option, const std::string& file, const char* other) {
    return fail(ErrorCode::InvalidArgument, option + " " + file + " is " + other + ", too");
  };
  const std::string summary = options.summary == "-" ? "" : options.summary;
  for (const auto& [option, file] :
       {std::pair<std::string, std::string>("--raw-log", options.raw_log),
        {"--replay", options.replay}}) {
    if (file.empty()) continue;
    if (is_file_of_chunk(path, file)) return clash(option, file, "the name of a chunk's file");
    if (!summary.empty() && is_one_output(file, summary)) {
      return clash(option, file, "the file of --summary");
    }
  }
  if (options.replay.empty()) return {};
  if (is_name_of_files(path) && os::is_same_file(options.replay, path)) {
    return clash("--replay", options.replay, "the file of --output");
  }
  if (!summary.empty() && os::is_same_file(options.replay, summary)) {
    return clash("--replay", options.replay, "the file of --summary");
  }
  return {};
}

// A slip of the pen ("-o server -- ./server") must not cost the program. Of a command that is
// looked for in PATH nothing is said.
Result<void> check_no_program(const RecordOptions& options, const std::string& path,
                              target::TargetFiles& files) {
  std::vector<std::string> programs;
  const bool is_path =
      !options.command.empty() && options.command.front().find('/') != std::string::npos;
  if (is_path) programs.push_back(options.command.front());
  for (const int pid : options.pids)
    programs.push_back(target::directory_of(static_cast<uint32_t>(pid)) + "/exe");
  for (const std::string& output : {path, options.summary, options.raw_log}) {
    if (output.empty() || output == "-") continue;
    const bool is_program = std::ranges::any_of(programs, [&](const std::string& program) {
      return files.is_same_file(program, output).value_or(false);
    });
    if (!is_program) continue;
    return fail(ErrorCode::InvalidArgument,
                output + " is the program that is to be recorded: give the output another name");
  }
  return {};
}

// Whether chunks go to files, or to standard output; else they are uploaded only.
bool writes_chunks(const RecordOptions& options) {
  return !options.upload || !options.output.empty();
}

// Empty if none are written.
std::string path_of_chunks(const RecordOptions& options, const std::string& path) {
  return writes_chunks(options) ? path : "";
}

// The raw log that was asked for; null if none was.
Result<std::unique_ptr<recorder::RawLogWriter>> start_raw_log(const RecordOptions& options) {
  if (options.raw_log.empty()) return nullptr;
  return recorder::RawLogWriter::create(options.raw_log);
}

// Null without --upload.
Result<std::unique_ptr<RecordUpload>> start_upload(const RecordOptions& options,
                                                   const std::string& path,
                                                   const os::SignalSet& signals) {
  if (!options.upload) return nullptr;
  const std::string chunks = path_of_chunks(options, path);
  return RecordUpload::start(options, is_name_of_files(chunks) ? chunks : "", signals);
}

tl::unexpected<OutputFailure> failed(OutputStage stage, Error error) {
  return tl::unexpected(OutputFailure{stage, std::move(error)});
}

}  // namespace

Result<void> check_outputs(const RecordOptions& options, const std::string& path) {
  warn_of(options, options.upload);
  const std::string chunks = path_of_chunks(options, path);
  if (auto ok = check_profile_outputs(options, chunks); !ok) return ok;
  if (auto ok = check_distinct(options, chunks); !ok) return ok;
  if (options.raw_log.empty()) return {};
  return os::check_writable(options.raw_log);
}

RecordOutputs::RecordOutputs(const RecordOptions& options, const std::string& path,
                             std::unique_ptr<OutputDirectory> its_directory,
                             std::unique_ptr<recorder::RawLogWriter> its_raw_log,
                             std::unique_ptr<RecordUpload> its_upload)
    : directory(std::move(its_directory)),
      raw_log(std::move(its_raw_log)),
      upload(std::move(its_upload)),
      files(path_of_chunks(options, path), options.format, options.output),
      chunks(options.format, writes_chunks(options) ? &files : nullptr, upload.get()) {}

tl::expected<std::unique_ptr<RecordOutputs>, OutputFailure> open_outputs(
    const RecordOptions& options, const std::string& path, target::TargetFiles& files,
    const os::SignalSet& signals) {
  auto directory = std::make_unique<OutputDirectory>(options);
  auto ok = check_outputs(options, path);
  if (ok) ok = check_no_program(options, path_of_chunks(options, path), files);
  if (!ok) return failed(OutputStage::Checks, ok.error());
  // Which may wait for its DSN, and be ended then.
  auto upload = start_upload(options, path, signals);
  if (!upload) return failed(OutputStage::Upload, upload.error());
  auto raw_log = start_raw_log(options);
  if (!raw_log) return failed(OutputStage::RawLog, raw_log.error());
  return std::make_unique<RecordOutputs>(options, path, std::move(directory), std::move(*raw_log),
                                         std::move(*upload));
}

}  // namespace sentry_prof::cli
