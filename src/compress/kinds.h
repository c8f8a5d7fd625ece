// The kinds of expanders, for expander.cpp alone.
#pragma once

#include "compress/expander.h"

#include <memory>

namespace sentry_prof::compress {

// Expanded bytes are handed on in pieces of this size: large enough to be cheap, small enough for
// the CPU's cache.
inline constexpr size_t kPiece_bytes = 128 * 1024;

std::unique_ptr<Expander> make_gzip_expander();
std::unique_ptr<Expander> make_zlib_expander();
std::unique_ptr<Expander> make_xz_expander();
std::unique_ptr<Expander> make_zstd_expander();

}  // namespace sentry_prof::compress
