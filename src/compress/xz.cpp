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
  XzExpander() : out_(kPiece_bytes) { begin_stream(); }
  ~XzExpander() override { lzma_end(&stream_); }
  XzExpander(const XzExpander&) = delete;
  XzExpander& operator=(const XzExpander&) = delete;

  Result<bool> feed(std::string_view piece, const ExpandedSink& sink) override;
  Result<void> finish() override;

 private:
  void begin_stream();
  bool begin_next_stream();

  lzma_stream stream_ = LZMA_STREAM_INIT;
  std::vector<char> out_;
  bool is_at_end_ = false;
};

tl::unexpected<Error> explain(lzma_ret status) {
  if (status == LZMA_MEM_ERROR) throw std::bad_alloc();
  const bool is_beyond_us = status == LZMA_MEMLIMIT_ERROR || status == LZMA_OPTIONS_ERROR;
  return is_beyond_us
             ? fail(ErrorCode::Unsupported, "the xz data needs more memory than it is given")
             : fail(ErrorCode::Malformed, "the xz data is damaged");
}

// Leaves the input where it is.
void XzExpander::begin_stream() {
  if (lzma_stream_decoder(&stream_, kMaxMemory_bytes, 0) != LZMA_OK) throw std::bad_alloc();
  is_at_end_ = false;
}

// Behind the end of one, as in what `cat a.xz b.xz` or pxz makes; zeros may stand in between
// (stream padding). False: what is there is no stream.
bool XzExpander::begin_next_stream() {
  while (stream_.avail_in > 0 && *stream_.next_in == 0) {
    ++stream_.next_in;
    --stream_.avail_in;
  }
  if (stream_.avail_in == 0) return true;
  constexpr uint8_t kFirstOfMagic = 0xfd;
  if (*stream_.next_in != kFirstOfMagic) return false;
  begin_stream();
  return true;
}

Result<bool> XzExpander::feed(std::string_view piece, const ExpandedSink& sink) {
  stream_.next_in = reinterpret_cast<const uint8_t*>(piece.data());
  stream_.avail_in = piece.size();
  bool is_full = false;
  while (stream_.avail_in > 0 || is_full) {
    if (is_at_end_ && !begin_next_stream()) {
      return fail(ErrorCode::Malformed, "there are bytes behind the end of the xz data");
    }
    if (is_at_end_) return true;  // all was padding
    stream_.next_out = reinterpret_cast<uint8_t*>(out_.data());
    stream_.avail_out = out_.size();
    const lzma_ret status = lzma_code(&stream_, LZMA_RUN);
    is_at_end_ = status == LZMA_STREAM_END;
    // LZMA_BUF_ERROR: nothing more to give of what has been taken in.
    if (status != LZMA_OK && status != LZMA_BUF_ERROR && !is_at_end_) return explain(status);
    const size_t count = out_.size() - stream_.avail_out;
    if (count > 0 && !sink({out_.data(), count})) return false;
    is_full = stream_.avail_out == 0 && !is_at_end_;
  }
  return true;
}

Result<void> XzExpander::finish() {
  if (is_at_end_) return {};
  return fail(ErrorCode::Malformed, "the xz data is cut off before its end");
}

}  // namespace

std::unique_ptr<Expander> make_xz_expander() { return std::make_unique<XzExpander>(); }

}  // namespace sentry_prof::compress
