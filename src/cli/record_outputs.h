// Where `record` writes to: found out, tried and opened before the recording begins.
#pragma once

#include "cli/chunk_files.h"
#include "cli/chunk_outputs.h"
#include "cli/profile_outputs.h"
#include "cli/record_options.h"
#include "cli/record_upload.h"
#include "os/signals.h"
#include "recorder/raw_log_writer.h"
#include "sentry_prof/result.h"
#include "target/target_files.h"

#include <memory>
#include <string>

namespace sentry_prof::cli {

// As check_profile_outputs(), and of a raw log: InvalidArgument if another output would replace it.
// Warns of options, too.
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
    const RecordOptions& options, const std::string& path, target::TargetFiles& files,
    const os::SignalSet& signals);

}  // namespace sentry_prof::cli
