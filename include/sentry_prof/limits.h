// Limits of Sentry's server that every written profile keeps by construction.
// Source: Relay's profile normalisation (relay-profiling) and its item size limits.
#pragma once

#include <cstdint>

namespace sentry_prof::limits {

// A V1 profile is refused when the last sample's elapsed time exceeds this (profiling_duration_is_too_long).
inline constexpr uint64_t kV1MaxDuration_ns = 30'000'000'000;

// A V2 chunk is refused when its newest and oldest samples are further apart than 60 s + 10 %.
inline constexpr uint64_t kV2MaxDuration_ns = 66'000'000'000;

// A profile or chunk item larger than this is refused (profiling_exceed_size_limit), also after
// decompression.
inline constexpr uint64_t kMaxItem_bytes = 50ull * 1024 * 1024;

// A thread with fewer samples that have a non-empty stack is dropped; a profile without any other
// thread is refused (profiling_not_enough_samples).
inline constexpr uint32_t kMinSamplesPerThread = 2;

}  // namespace sentry_prof::limits
