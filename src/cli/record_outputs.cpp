#include "cli/record_outputs.h"

#include "base/path.h"
#include "cli/message.h"
#include "os/atomic_file.h"
#include "os/paths.h"
#include "os/standard_streams.h"
#include "target/process_files.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

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
    const bool is_program = std::ranges::any_of(
        programs, [&](const std::string& program) { return files.is_same_file(program, output); });
    if (!is_program) continue;
    return fail(ErrorCode::InvalidArgument,
                output + " is the program that is to be recorded: give the output another name");
  }
  return {};
}

// "-" also if no files are written.
std::string path_of_chunks(const RecordOptions& options, const std::string& path) {
  return writes_files(options) ? path : "-";
}

// The raw log that was asked for; null if none was.
Result<std::unique_ptr<recorder::RawLogWriter>> start_raw_log(const RecordOptions& options) {
  if (options.raw_log.empty()) return nullptr;
  return recorder::RawLogWriter::create(options.raw_log);
}

// Null without --upload.
Result<std::unique_ptr<RecordUpload>> start_upload(const RecordOptions& options,
                                                   const std::string& path) {
  if (!options.upload) return nullptr;
  return RecordUpload::start(options, writes_files(options) && path != "-" ? path : "");
}

constexpr uint32_t kManyChunks = 9999;  // a week of them

// Of a chunk that would find out when what was recorded before it is gone.
Result<void> check_length(const std::string& path) {
  if (base_name(path).size() <= NAME_MAX) return {};
  return fail(ErrorCode::InvalidArgument,
              fmt::format("cannot write {}: its name would be too long, if the recording comes to "
                          "so many files. Choose a shorter name.",
                          path));
}

tl::unexpected<OutputFailure> failed(OutputStage stage, Error error) {
  return tl::unexpected(OutputFailure{stage, std::move(error)});
}

}  // namespace

bool writes_files(const RecordOptions& options) {
  return !options.upload || !options.output.empty();
}

OutputDirectory::OutputDirectory(const RecordOptions& options) : path_(options.output) {
  is_new_ = path_.ends_with('/') && ::access(path_.c_str(), F_OK) != 0;
}

OutputDirectory::~OutputDirectory() {
  if (is_new_) ::rmdir(path_.c_str());
}

Result<void> check_outputs(const RecordOptions& options, const std::string& path) {
  for (const std::string& warning :
       {warning_of_platform(options.platform), warning_of_transaction(options)}) {
    if (!warning.empty() && !options.is_quiet) complain("warning: " + warning);
  }
  const bool uses_stdout = path == "-" || options.summary == "-";
  if (uses_stdout && !os::is_writable(STDOUT_FILENO)) {
    return fail(ErrorCode::Io, "standard output is closed, nothing can be written to it");
  }
  if (path != "-" && writes_files(options)) {
    if (options.output.ends_with('/')) {
      if (auto ok = os::make_directory(options.output); !ok) return ok;
    }
    if (auto ok = os::check_writable(path); !ok) return ok;
    if (auto ok = check_length(chunk_path(path, kManyChunks)); !ok) return ok;
    if (os::others_can_replace(path)) {
      complain("warning: other users may write to the directory of " + path);
    }
  }
  if (auto ok = check_distinct(options, path_of_chunks(options, path)); !ok) return ok;
  if (!options.raw_log.empty()) {
    if (auto ok = os::check_writable(options.raw_log); !ok) return ok;
  }
  if (options.summary.empty() || options.summary == "-") return {};
  return os::check_writable(options.summary);
}

RecordOutputs::RecordOutputs(const RecordOptions& options, const std::string& path,
                             std::unique_ptr<OutputDirectory> its_directory,
                             std::unique_ptr<recorder::RawLogWriter> its_raw_log,
                             std::unique_ptr<RecordUpload> its_upload)
    : directory(std::move(its_directory)),
      raw_log(std::move(its_raw_log)),
      upload(std::move(its_upload)),
      files(path, options.format),
      chunks(options.format, writes_files(options) ? &files : nullptr, upload.get()) {}

tl::expected<std::unique_ptr<RecordOutputs>, OutputFailure> open_outputs(
    const RecordOptions& options, const std::string& path, target::TargetFiles& files) {
  auto directory = std::make_unique<OutputDirectory>(options);
  auto ok = check_outputs(options, path);
  if (ok) ok = check_no_program(options, path_of_chunks(options, path), files);
  if (!ok) return failed(OutputStage::Checks, ok.error());
  auto raw_log = start_raw_log(options);
  if (!raw_log) return failed(OutputStage::RawLog, raw_log.error());
  auto upload = start_upload(options, path);
  if (!upload) return failed(OutputStage::Upload, upload.error());
  return std::make_unique<RecordOutputs>(options, path, std::move(directory), std::move(*raw_log),
                                         std::move(*upload));
}

Result<void> write_summary(const RecordOptions& options, const std::string& json) {
  if (options.summary == "-") return write_to_stdout(json);
  auto file = os::AtomicFile::create(options.summary);
  if (!file) return tl::unexpected(file.error());
  if (auto ok = file->write(json); !ok) return ok;
  return file->commit();
}

}  // namespace sentry_prof::cli
