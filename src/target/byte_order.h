// Whose unwind information is used.
#pragma once

#include "elf/layout.h"
#include "sentry_prof/result.h"

#include <bit>

namespace sentry_prof::target {

// Of images as of debug files. The kernels of x86-64 and aarch64 that are sampled run no big-endian
// code, but anything can be mapped, and lie in a file. Unsupported then.
inline Result<void> check_byte_order(const elf::Layout& layout) {
  if (layout.order == std::endian::little) return {};
  return fail(ErrorCode::Unsupported, "it is big-endian, which this processor's programs are not");
}

}  // namespace sentry_prof::target
