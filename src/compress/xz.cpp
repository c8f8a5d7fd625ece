#include "compress/kinds.h"

#include <new>
#include <vector>

#include <lzma.h>

namespace sentry_prof::compress {

namespace {

// What `xz` makes unasked takes 9 MiB, and 17 at its level 7.
constexpr uint64_t kMaxMemory_bytes = uint64_t{24} << 20;

class XzExpander final : public Expander {
 public:
  // Several streams, as `cat a.xz b.xz` or pxz makes them, are one text.
  XzExpander() : out_(kPiece_bytes) {
    const lzma_ret status = lzma_stream_decoder(&stream_, kMaxMemory_bytes, LZMA_CONCATENATED);
    if (status != LZMA_OK) throw std::bad_alloc();
  }
  ~XzExpander() override { lzma_end(&stream_); }
  XzExpander(const XzExpander&) = delete;
  XzExpander& operator=(const XzExpander&) = delete;

  Result<bool> feed(std::string_view piece, const ExpandedSink& sink) override;
  Result<void> finish() override;

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  std::vector<char> out_;
};

tl::unexpected<Error> explain(lzma_ret status) {
  if (status == LZMA_MEM_ERROR) throw std::bad_alloc();
  const bool is_beyond_us = status == LZMA_MEMLIMIT_ERROR || status == LZMA_OPTIONS_ERROR;
  return is_beyond_us
             ? fail(ErrorCode::Unsupported, "the xz data needs more memory than it is given")
             : fail(ErrorCode::Malformed, "the xz data is damaged");
}

Result<bool> XzExpander::feed(std::string_view piece, const ExpandedSink& sink) {
  stream_.next_in = reinterpret_cast<const uint8_t*>(piece.data());
  stream_.avail_in = piece.size();
  bool is_full = false;
  while (stream_.avail_in > 0 || is_full) {
    stream_.next_out = reinterpret_cast<uint8_t*>(out_.data());
    stream_.avail_out = out_.size();
    const lzma_ret status = lzma_code(&stream_, LZMA_RUN);
    // LZMA_BUF_ERROR: nothing more to give of what has been taken in.
    if (status != LZMA_OK && status != LZMA_BUF_ERROR) return explain(status);
    const size_t count = out_.size() - stream_.avail_out;
    if (count > 0 && !sink({out_.data(), count})) return false;
    is_full = stream_.avail_out == 0;
  }
  return true;
}

// Only now it is known that no further stream comes.
Result<void> XzExpander::finish() {
  stream_.next_out = reinterpret_cast<uint8_t*>(out_.data());
  stream_.avail_out = out_.size();
  if (lzma_code(&stream_, LZMA_FINISH) == LZMA_STREAM_END) return {};
  return fail(ErrorCode::Malformed, "the xz data is cut off before its end");
}

}  // namespace

std::unique_ptr<Expander> make_xz_expander() { return std::make_unique<XzExpander>(); }

}  // namespace sentry_prof::compress
