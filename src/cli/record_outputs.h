// Where `record` writes to: found out, tried and opened before the recording begins.
#pragma once

#include "cli/chunk_files.h"
#include "cli/chunk_outputs.h"
#include "cli/record_options.h"
#include "cli/record_upload.h"
#include "recorder/raw_log_writer.h"
#include "sentry_prof/result.h"
#include "target/target_files.h"

#include <memory>
#include <string>

namespace sentry_prof::cli {

// Whether chunks go to files, or to standard output; else they are uploaded only.
bool writes_files(const RecordOptions& options);

// A directory that was made for the output, by check_outputs(); one that stays empty is removed
// again when this goes. Must be there before the directory is.
class OutputDirectory {
 public:
  explicit OutputDirectory(const RecordOptions& options);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

 private:
  std::string path_;
  bool is_new_ = false;
};

// Whether all that was asked for can be written, told before the recording begins, not after an
// hour of it. `path` as resolve_output() gives it. Makes the directory of the output; warns of one
// that others may write to. InvalidArgument if one output would replace another, or the log that is
// replayed; Io if standard output is wanted and closed; else as os::make_directory() and
// os::check_writable().
Result<void> check_outputs(const RecordOptions& options, const std::string& path);

// The outputs of a recording, in the order in which they are opened. Stays where it is: `chunks`
// refers to the others, as do the sampler and the recorder, which must go first.
struct RecordOutputs {
  RecordOutputs(const RecordOptions& options, const std::string& path,
                std::unique_ptr<OutputDirectory> its_directory,
                std::unique_ptr<recorder::RawLogWriter> its_raw_log,
                std::unique_ptr<RecordUpload> its_upload);
  RecordOutputs(const RecordOutputs&) = delete;
  RecordOutputs& operator=(const RecordOutputs&) = delete;

  std::unique_ptr<OutputDirectory> directory;
  std::unique_ptr<recorder::RawLogWriter> raw_log;  // null: none was asked for
  std::unique_ptr<RecordUpload> upload;             // null without --upload
  ChunkFiles files;
  ChunkOutputs chunks;
};

enum class OutputStage {
  Checks,  // check_outputs()
  RawLog,  // RawLogWriter::create()
  Upload,  // RecordUpload::start()
};

struct OutputFailure {
  OutputStage stage = OutputStage::Checks;
  Error error;  // as the function that `stage` names gave it
};

// `path` as resolve_output() gives it; `options` must outlive the outputs. `files` tells whether an
// output is the program that is to be recorded. Behind the fork of a command that is launched,
// before other threads run: see RecordUpload::start(). After a failure nothing of it is left.
tl::expected<std::unique_ptr<RecordOutputs>, OutputFailure> open_outputs(
    const RecordOptions& options, const std::string& path, target::TargetFiles& files);

// To the file of --summary, whole or not there, or to standard output. As os::AtomicFile, or Io.
Result<void> write_summary(const RecordOptions& options, const std::string& json);

}  // namespace sentry_prof::cli
