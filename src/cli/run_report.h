// What a run was, told at its end: by `record`, live or replayed, and by `convert`.
#pragma once

#include "cli/chunk_files.h"
#include "cli/chunk_outputs.h"
#include "cli/profile_options.h"
#include "recorder/figures.h"

namespace sentry_prof::cli {

// Prints what the run was, and complains of chunks that could not be written: false if there are
// such.
bool report(const ProfileOptions& options, const recorder::RunFigures& figures,
            const ChunkFiles& files, const HalfWritten& half_written);

// What --summary asks for: a whole file or none, or standard output. False, after a complaint, if
// it could not be written.
bool write_summary(const ProfileOptions& options, const recorder::RunFigures& figures,
                   const ChunkFiles& files);

}  // namespace sentry_prof::cli
