// Limits of Sentry's server: every profile that is written keeps them by construction, every one
// that is read is judged by them.
// Source: Relay's profile normalisation (relay-profiling) and its documented size limits.
#pragma once

#include <cstdint>

namespace sentry_prof::limits {

// A V1 profile is refused when the last sample's elapsed time exceeds this
// (profiling_duration_is_too_long).
inline constexpr uint64_t kV1MaxDuration_ns = 30'000'000'000;

// A V2 chunk is refused when its newest and oldest samples are further apart than 60 s + 10 %.
inline constexpr uint64_t kV2MaxDuration_ns = 66'000'000'000;

// A profile or chunk item larger than this is refused (profiling_exceed_size_limit), also after
// decompression.
inline constexpr uint64_t kMaxItem_bytes = 50ull * 1024 * 1024;

// An event (transaction) item, and a whole envelope, expanded.
inline constexpr uint64_t kMaxTransaction_bytes = 1024 * 1024;
inline constexpr uint64_t kMaxEnvelope_bytes = 200ull * 1024 * 1024;

// A thread with fewer samples that have a non-empty stack is dropped; a profile without any other
// thread is refused (profiling_not_enough_samples).
inline constexpr uint32_t kMinSamplesPerThread = 2;

}  // namespace sentry_prof::limits
