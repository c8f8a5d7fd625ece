#include "compress/kinds.h"

#include <new>
#include <vector>

#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

namespace sentry_prof::compress {

namespace {

struct FreeStream {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

class ZstdExpander final : public Expander {
 public:
  // The window that `zstd --long` makes and that decoders take unasked; of its memory only what is
  // written exists.
  static constexpr int kMaxWindowLog = 27;

  ZstdExpander() : stream_(ZSTD_createDStream()), out_(kPiece_bytes) {
    if (stream_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  Result<bool> feed(std::string_view piece, const ExpandedSink& sink) override;
  Result<void> finish() override;

 private:
  std::unique_ptr<ZSTD_DStream, FreeStream> stream_;
  std::vector<char> out_;
  bool is_inside_frame_ = true;
};

tl::unexpected<Error> explain(size_t status) {
  switch (ZSTD_getErrorCode(status)) {
    case ZSTD_error_memory_allocation:
      throw std::bad_alloc();
    case ZSTD_error_frameParameter_windowTooLarge:
      return fail(ErrorCode::Unsupported,
                  "the zstd data needs a window above 128 MiB. Compress it without --ultra "
                  "--long=28 and more");
    case ZSTD_error_prefix_unknown:
      return fail(ErrorCode::Malformed, "there are bytes behind the end of the zstd data");
    default:
      return fail(ErrorCode::Malformed,
                  fmt::format("the zstd data is damaged ({})", ZSTD_getErrorName(status)));
  }
}

Result<bool> ZstdExpander::feed(std::string_view piece, const ExpandedSink& sink) {
  ZSTD_inBuffer in{piece.data(), piece.size(), 0};
  bool is_full = false;
  while (in.pos < in.size || is_full) {
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    const size_t status = ZSTD_decompressStream(stream_.get(), &out, &in);
    if (ZSTD_isError(status)) return explain(status);
    is_inside_frame_ = status != 0;
    if (out.pos > 0 && !sink({out_.data(), out.pos})) return false;
    // Asked once more behind the end of a frame, the decoder would wait for the next one.
    is_full = out.pos == out.size && is_inside_frame_;
  }
  return true;
}

Result<void> ZstdExpander::finish() {
  if (!is_inside_frame_) return {};
  return fail(ErrorCode::Malformed, "the zstd data is cut off before its end");
}

}  // namespace

std::unique_ptr<Expander> make_zstd_expander() { return std::make_unique<ZstdExpander>(); }

}  // namespace sentry_prof::compress
