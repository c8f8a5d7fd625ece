// Gathers what a run was from the parts that took part in it.
#pragma once

#include "recorder/chunk_finisher.h"
#include "recorder/figures.h"
#include "recorder/recording.h"
#include "target/image_store.h"
#include "target/process_table.h"

namespace sentry_prof::recorder {

// Before: the sampler's stats and setup are in `figures`, and the finisher is finished.
void fill_in(RunFigures& figures, const Recording& recording, const target::ImageStore& images,
             const target::ProcessTable& processes, ChunkFinisher& finisher);

}  // namespace sentry_prof::recorder
