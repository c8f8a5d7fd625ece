// Runs the recording thread's work on a raw log in the place of a target.
#pragma once

#include "recorder/chunk_sink.h"
#include "recorder/figures.h"
#include "recorder/raw_log.h"

#include <memory>

namespace sentry_prof::recorder {

// Serves the files that a raw log holds: a question gets the answers of then, in their order, the
// last one from there on. What was not read then fails to be read. `log` must outlive the files.
std::unique_ptr<target::ImageOpener> make_replay_opener(const RawLog& log);

// Writes the profile of a raw log once more: the same images, samples, frames and times.
// Unsupported if records of such a layout cannot be decoded; LimitExceeded if no second thread can
// be started.
Result<RunFigures> replay(const RawLog& log, const Uuid& profiler_id, ChunkSink& sink);

}  // namespace sentry_prof::recorder
