#include "cli/convert_command.h"

#include "cli/chunk_files.h"
#include "cli/environment.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/perf_data_run.h"
#include "cli/profile_outputs.h"
#include "cli/profile_session.h"
#include "cli/run_report.h"
#include "compress/expander.h"
#include "os/file.h"
#include "os/paths.h"
#include "os/signals.h"
#include "os/system_info.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include <sys/stat.h>

namespace sentry_prof::cli {

namespace {

using InputBytes = std::shared_ptr<const os::FileByteSource>;

// "" if it is shorter.
std::string beginning_of(const ByteSource& file) {
  std::string head(formats::kPerfDataMagic_bytes, '\0');
  return file.read_at(0, std::as_writable_bytes(std::span(head))) ? head : "";
}

tl::unexpected<Error> refuse(const std::string& why) { return fail(ErrorCode::Unsupported, why); }

// Nothing of it was read that could have been no perf.data.
tl::unexpected<Error> fail_to_read(const std::string& why) { return fail(ErrorCode::Io, why); }

// The next step for what is no regular file.
tl::unexpected<Error> refuse_kind(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return fail_to_read(
        path +
        ": is a directory, not a file. Of one of 'perf record --kcore' give the file "
        "'data' in it; those of 'perf record --threads' cannot be converted");
  }
  if (S_ISFIFO(status.st_mode)) {
    return fail_to_read(path +
                        ": is a pipe, not a file, and it is read twice. Keep what comes out of "
                        "it first: cat " +
                        path + " > perf.data");
  }
  return fail_to_read(path + ": not a regular file");
}

// It is read twice, at any place.
Result<InputBytes> open_input(const std::string& path) {
  if (path == "-") {
    return fail_to_read(
        "standard input cannot be converted: it is read twice. Keep it in a file first: "
        "cat > perf.data");
  }
  auto file = os::FileByteSource::open(path);
  if (!file && file.error().code == ErrorCode::Unsupported) return refuse_kind(path);
  const std::string head = file ? beginning_of(**file) : "";
  if (!file || formats::is_perf_data(head)) return file;
  if ((*file)->size_bytes() == 0) return refuse(path + ": is empty");
  if ((*file)->size_bytes() < formats::kPerfDataMagic_bytes) {
    return refuse(path + ": too short for a perf.data file, or cut off");
  }
  if (compress::detect_compression(head) != compress::Compression::None) {
    return refuse(path + ": is compressed, and is read at any place: expand it first");
  }
  return refuse(path +
                ": not a perf.data file, which is all that can be converted. ('validate' judges "
                "profiles, 'upload' sends them)");
}

// What is converted must not be replaced by what it is converted to.
Result<void> check_distinct(const ConvertOptions& options, const std::string& path) {
  const std::string& summary = options.summary;
  const bool is_output = is_file_of_chunk(path, options.input) ||
                         (path != "-" && os::is_same_file(options.input, path));
  if (!is_output && (summary.empty() || !os::is_same_file(options.input, summary))) return {};
  return fail(ErrorCode::InvalidArgument, options.input + " is the name of an output, too");
}

int exit_code_of(const Error& error) {
  const bool is_of_content = error.code == ErrorCode::Unsupported ||
                             error.code == ErrorCode::Malformed ||
                             error.code == ErrorCode::LimitExceeded;
  return is_of_content ? kAnswerIsNo : kInputOutput;
}

// What the file says of the machine that it was recorded on; else nothing, not what ours is.
Session session_of(const ProfileOptions& options, const formats::PerfDataHeader& header) {
  Session session = make_session(options);
  const os::KernelRelease release = os::split_kernel_release(header.os_release);
  session.os_version = release.version;
  session.os_build = release.build;
  if (!header.arch.empty()) session.device_architecture = header.arch;
  session.device_manufacturer.clear();
  session.device_model.clear();
  return session;
}

PerfDataRun run_of(const ProfileOptions& options, const formats::PerfData& data,
                   const os::FileByteSource& file) {
  PerfDataRun run;
  run.file_modified_unix_ns = file.modified_unix_ns();
  run.chunk_ns = chunk_ns(options);
  run.max_chunk_json_bytes = kMaxChunkJson_bytes;
  run.session = session_of(options, data.header());
  const std::string home = environment_variable("HOME");
  if (!home.empty()) run.build_id_cache = home + "/.debug";
  return run;
}

// Whether the output's name comes from the process that was recorded.
bool is_named_by_us(const ProfileOptions& options) {
  return resolve_output(options.output, "perf", 0, options.format) != options.output;
}

// kDone, or the exit code after it was told what is wrong.
int check_writing(const ConvertOptions& options, const std::string& path) {
  if (auto ok = check_distinct(options, path); !ok) {
    complain(ok.error().message);
    return kWrongUsage;
  }
  warn_of(options, false);
  if (auto ok = check_profile_outputs(options, path); !ok) {
    complain(ok.error().message);
    return ok.error().code == ErrorCode::InvalidArgument ? kWrongUsage : kInputOutput;
  }
  return kDone;
}

int convert(const ConvertOptions& options, const formats::PerfData& data,
            const os::FileByteSource& file) {
  const std::string path = resolve_output(options.output, "perf",
                                          static_cast<int>(data.survey().main_pid), options.format);
  const OutputDirectory directory(options);
  if (is_named_by_us(options)) {
    if (const int code = check_writing(options, path); code != kDone) return code;
  }
  ChunkFiles files(path, options.format, options.output);
  const auto figures = convert_perf_data(data, run_of(options, data, file), files);
  if (!figures) {
    complain(options.input + ": " + figures.error().message);
    return exit_code_of(figures.error());
  }
  const bool is_reported = report(options, *figures, files, {});
  if (!write_summary(options, *figures, files) || !is_reported) return kInputOutput;
  return figures->chunks_written > 0 ? kDone : kAnswerIsNo;
}

}  // namespace

int convert_command(ConvertOptions options) {
  if (auto ok = complete(options); !ok) {
    complain(ok.error().message + ". Try: sentry-prof convert --help");
    return kWrongUsage;
  }
  os::make_broken_pipe_an_error();
  const auto file = open_input(options.input);
  if (!file) {
    complain(file.error().message);
    return exit_code_of(file.error());
  }
  // Not after minutes of reading, where the name is known now.
  if (!is_named_by_us(options)) {
    if (const int code = check_writing(options, options.output); code != kDone) return code;
  }
  const auto data = formats::PerfData::open(**file);
  if (!data) {
    complain(options.input + ": " + data.error().message);
    return exit_code_of(data.error());
  }
  return convert(options, *data, **file);
}

}  // namespace sentry_prof::cli
