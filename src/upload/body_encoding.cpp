#include "upload/body_encoding.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include <zlib.h>
#include <zstd.h>

namespace sentry_prof::upload {

namespace {

// Measured on V2 chunks of 0.4 to 20 MB (one core of 2024): level 3 shrinks 8 to 10 times at
// 250-320 MB/s, 6 shrinks 9 to 12 times at 110-130 MB/s, 9 no more than 5 % better at 45 MB/s. A
// chunk a minute costs 10 ms at level 6.
constexpr int kGzipLevel = 6;
// Smaller (11 to 16 times) and faster (180 MB/s) than gzip; level 3 shrinks 9 to 14 times at 500
// MB/s.
constexpr int kZstdLevel = 6;
// zlib's highest window (32 KiB), with a gzip head and trailer instead of zlib's own.
constexpr int kGzipWindowBits = 15 + 16;
constexpr int kDefaultMemoryLevel = 8;
// Written piece by piece: a bound on the whole output would take the memory of a second input.
constexpr size_t kPiece_bytes = 64 * 1024;

[[nodiscard]] tl::unexpected<Error> fail_to_compress(const char* library, const char* why) {
  return fail(ErrorCode::LimitExceeded,
              std::string("the envelope cannot be compressed: ") + library + ": " + why);
}

// Runs `stream` over `body` to the end of both.
int deflate_all(z_stream& stream, std::string_view body, std::string& out) {
  std::vector<Bytef> piece(kPiece_bytes);
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0) {  // zlib counts in 32 bits: a large input is handed over in parts
      const size_t part = std::min<size_t>(body.size(), std::numeric_limits<uInt>::max());
      // zlib reads only, but its interface is older than const.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
      stream.avail_in = static_cast<uInt>(part);
      body.remove_prefix(part);
    }
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(piece.size());
    status = ::deflate(&stream, body.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size() - stream.avail_out);
  }
  return status;
}

Result<std::string> gzip(std::string_view body) {
  z_stream stream{};
  if (::deflateInit2(&stream, kGzipLevel, Z_DEFLATED, kGzipWindowBits, kDefaultMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
    return fail_to_compress("zlib", "not enough memory");
  }
  std::string out;
  const int status = deflate_all(stream, body, out);
  ::deflateEnd(&stream);
  if (status != Z_STREAM_END) return fail_to_compress("zlib", "unexpected end");
  return out;
}

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

Result<std::string> zstd(std::string_view body) {
  const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (context == nullptr) return fail_to_compress("zstd", "not enough memory");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kZstdLevel);
  ZSTD_CCtx_setPledgedSrcSize(context.get(), body.size());  // a receiver then knows it beforehand
  std::vector<char> piece(kPiece_bytes);
  std::string out;
  ZSTD_inBuffer input{body.data(), body.size(), 0};
  size_t left = 1;
  while (left != 0) {
    ZSTD_outBuffer output{piece.data(), piece.size(), 0};
    left = ZSTD_compressStream2(context.get(), &output, &input, ZSTD_e_end);
    if (ZSTD_isError(left)) return fail_to_compress("zstd", ZSTD_getErrorName(left));
    out.append(piece.data(), output.pos);
  }
  return out;
}

}  // namespace

std::string_view content_encoding(BodyEncoding encoding) {
  switch (encoding) {
    case BodyEncoding::Identity:
      return "";
    case BodyEncoding::Gzip:
      return "gzip";
    case BodyEncoding::Zstd:
      return "zstd";
  }
  return "";
}

Result<std::string> encode_body(std::string_view body, BodyEncoding encoding) {
  switch (encoding) {
    case BodyEncoding::Identity:
      return std::string(body);
    case BodyEncoding::Gzip:
      return gzip(body);
    case BodyEncoding::Zstd:
      return zstd(body);
  }
  return std::string(body);
}

}  // namespace sentry_prof::upload
