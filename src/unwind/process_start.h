// Where the kernel begins a process's first stack: the number of arguments, the pointers to them,
// those to the environment, the auxiliary vector.
// Source: System V ABI, x86-64 supplement, section 3.4.1 and figure 3.9.
#pragma once

#include "unwind/stack_snapshot.h"

#include <optional>

namespace sentry_prof::unwind {

// A C library's start-up code has small frames: musl's 100 bytes.
inline constexpr unsigned kMaxStartFrames_words = 64;

// Where that stands, if it does so within these words above `sp`.
std::optional<RuntimeAddress> process_start_above(const StackSnapshot& stack, RuntimeAddress sp);

}  // namespace sentry_prof::unwind
