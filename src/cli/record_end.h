// The end of a live recording: what it leaves behind, and what is still to be sent.
#pragma once

#include "cli/profile_options.h"
#include "cli/record_outputs.h"
#include "cli/record_upload.h"
#include "os/signals.h"
#include "recorder/recorder.h"
#include "sentry_prof/result.h"

#include <functional>
#include <optional>

namespace sentry_prof::cli {

struct RecordEnd {
  bool is_written = true;  // all but what was to be sent
  UploadEnd sent;
  std::optional<os::SignalSet::Taken> taken;  // while the rest was sent
};

// Finishes the raw log, reports, sends the rest and writes the summary, with complaints of what
// fails; `run` gets the figures of the uploads. `is_killable`: outside of uploads the next signal
// ends the process, since standard output may be a pipe that nobody reads. `on_tick`, which may be
// empty, is called ten times a second while the rest is sent.
RecordEnd leave(const ProfileOptions& options, recorder::RunResult& run,
                const RecordOutputs& outputs, const os::SignalSet& signals, bool is_killable,
                const std::function<void()>& on_tick);

// Complains of a recording that failed; chunks may wait to be sent all the same. `upload` may be
// null.
void give_up(RecordUpload* upload, const os::SignalSet& signals, const Error& error);

}  // namespace sentry_prof::cli
