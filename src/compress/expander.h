// Expands what is compressed, piece by piece: gzip (RFC 1952) and Zstandard (RFC 8878), also
// several members or frames behind each other. What comes out may be thousands of times as large as
// what goes in: the receiver says when it is enough.
#pragma once

#include "sentry_prof/result.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace sentry_prof::compress {

enum class Compression { None, Gzip, Zstd };

// So many bytes at the beginning tell the compression.
inline constexpr size_t kMagic_bytes = 4;

// By the magic number at the beginning, never by a name. JSON begins with none of them.
Compression detect_compression(std::string_view head);

// Takes a piece of expanded bytes; false: no more of them.
using ExpandedSink = std::function<bool(std::string_view)>;

class Expander {
 public:
  virtual ~Expander() = default;
  // The next compressed bytes. False once the sink wants no more; then nothing may be fed any more.
  // Malformed: damaged data, or bytes behind the end that are neither a further member nor zeros
  // (gzip pads with them). Unsupported: a zstd window above 128 MiB. Memory: the window, 32 KiB for
  // gzip, and of zstd's at most as much as was expanded.
  virtual Result<bool> feed(std::string_view piece, const ExpandedSink& sink) = 0;
  // Behind the last piece. Malformed: the stream is cut off.
  virtual Result<void> finish() = 0;
};

// `compression` is not None.
std::unique_ptr<Expander> make_expander(Compression compression);

}  // namespace sentry_prof::compress
