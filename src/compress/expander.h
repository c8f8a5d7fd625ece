// Expands what is compressed, piece by piece: gzip (RFC 1952), Zstandard (RFC 8878), zlib (RFC
// 1950) and xz, of all but zlib also several members, frames or streams behind each other. What
// comes out may be thousands of times as large as what goes in: the receiver says when it is
// enough.
#pragma once

#include "sentry_prof/result.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace sentry_prof::compress {

enum class Compression { None, Gzip, Zstd, Zlib, Xz };

// So many bytes at the beginning tell the compression.
inline constexpr size_t kMagic_bytes = 4;

// None, Gzip, Zstd or Xz, by the magic number at the beginning, never by a name. JSON begins with
// none of them. zlib is what ELF files have inside, where a header tells.
Compression detect_compression(std::string_view head);

// Takes a piece of expanded bytes; false: no more of them.
using ExpandedSink = std::function<bool(std::string_view)>;

class Expander {
 public:
  virtual ~Expander() = default;
  // The next compressed bytes. False once the sink wants no more; then nothing may be fed any more.
  // Malformed: damaged data, or bytes behind the end that are neither a further member nor zeros
  // (gzip and xz pad with them). Unsupported: a zstd window above 128 MiB. Memory: the window, 32
  // KiB for gzip and zlib, of zstd's at most as much as was expanded, 24 MiB for xz (Unsupported
  // above).
  virtual Result<bool> feed(std::string_view piece, const ExpandedSink& sink) = 0;
  // Behind the last piece. Malformed: the stream is cut off.
  virtual Result<void> finish() = 0;
};

// `compression` is not None.
std::unique_ptr<Expander> make_expander(Compression compression);

// All of it at once. LimitExceeded: more than `max_bytes`; Malformed, Unsupported as above.
Result<std::vector<std::byte>> expand_whole(Compression compression,
                                            std::span<const std::byte> bytes, size_t max_bytes);

}  // namespace sentry_prof::compress
