// The Sampler that stands on perf_event_open(2).
#pragma once

#include "sampling/sampler.h"

#include <memory>

namespace sentry_prof::sampling {

// Opens nothing yet.
std::unique_ptr<Sampler> make_perf_sampler(const SamplerOptions& options);

}  // namespace sentry_prof::sampling
