// The Sampler that stands on perf_event_open(2).
#pragma once

#include "sampling/record_tap.h"
#include "sampling/sampler.h"

#include <memory>

namespace sentry_prof::sampling {

// Opens nothing yet. `tap` sees every record; it must outlive the sampler.
std::unique_ptr<Sampler> make_perf_sampler(const SamplerOptions& options, RecordTap* tap = nullptr);

}  // namespace sentry_prof::sampling
