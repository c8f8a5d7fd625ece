#include "compress/kinds.h"

#include <algorithm>
#include <new>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

namespace sentry_prof::compress {

namespace {

// zlib.h, inflateInit2: added to the window's bits, "decode only the gzip format".
constexpr int kGzipOnly = 16;

// Both frames that deflate data comes in; zlib streams do not stand behind each other.
class DeflateExpander final : public Expander {
 public:
  explicit DeflateExpander(bool is_gzip) : is_gzip_(is_gzip), out_(kPiece_bytes) {
    const int window_bits = MAX_WBITS + (is_gzip ? kGzipOnly : 0);
    if (inflateInit2(&stream_, window_bits) != Z_OK) throw std::bad_alloc();
  }
  ~DeflateExpander() override { inflateEnd(&stream_); }
  DeflateExpander(const DeflateExpander&) = delete;
  DeflateExpander& operator=(const DeflateExpander&) = delete;

  Result<bool> feed(std::string_view piece, const ExpandedSink& sink) override;
  Result<void> finish() override;

 private:
  enum class State { Start, InMember, BetweenMembers, InPadding };

  bool begin_member(std::string_view& piece);
  Result<bool> expand_member(std::string_view& piece, const ExpandedSink& sink);

  const char* name() const { return is_gzip_ ? "gzip" : "zlib"; }

  bool is_gzip_;
  z_stream stream_{};
  std::vector<char> out_;
  State state_ = State::Start;
};

// Skips padding. False if there is nothing left.
bool DeflateExpander::begin_member(std::string_view& piece) {
  if (state_ != State::Start) {
    const size_t zeros = std::min(piece.find_first_not_of('\0'), piece.size());
    if (zeros > 0) state_ = State::InPadding;
    piece.remove_prefix(zeros);
  }
  return !piece.empty();
}

// Until the member or the piece ends, or the sink has enough (false).
Result<bool> DeflateExpander::expand_member(std::string_view& piece, const ExpandedSink& sink) {
  // zlib's structure is older than const; it does not write there.
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
  stream_.avail_in = static_cast<uInt>(piece.size());
  int status = Z_OK;
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_.avail_out = static_cast<uInt>(out_.size());
    status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      return fail(ErrorCode::Malformed,
                  fmt::format("the {} data is damaged ({})", name(),
                              stream_.msg == nullptr ? "unknown cause" : stream_.msg));
    }
    const size_t count = out_.size() - stream_.avail_out;
    if (count > 0 && !sink({out_.data(), count})) return false;
    // A full buffer may mean that more is to come of what has been taken in already.
  } while (status != Z_STREAM_END && (stream_.avail_in > 0 || stream_.avail_out == 0));
  piece.remove_prefix(piece.size() - stream_.avail_in);
  if (status == Z_STREAM_END) state_ = State::BetweenMembers;
  return true;
}

Result<bool> DeflateExpander::feed(std::string_view piece, const ExpandedSink& sink) {
  while (!piece.empty()) {
    if (state_ != State::InMember) {
      if (!begin_member(piece)) break;
      if (state_ != State::Start && (!is_gzip_ || piece.front() != '\x1f')) {
        return fail(ErrorCode::Malformed,
                    fmt::format("there are bytes behind the end of the {} data", name()));
      }
      inflateReset(&stream_);
      state_ = State::InMember;
    }
    const auto more = expand_member(piece, sink);
    if (!more || !*more) return more;
  }
  return true;
}

Result<void> DeflateExpander::finish() {
  if (state_ == State::BetweenMembers || state_ == State::InPadding) return {};
  return fail(ErrorCode::Malformed, fmt::format("the {} data is cut off before its end", name()));
}

}  // namespace

std::unique_ptr<Expander> make_gzip_expander() { return std::make_unique<DeflateExpander>(true); }

std::unique_ptr<Expander> make_zlib_expander() { return std::make_unique<DeflateExpander>(false); }

}  // namespace sentry_prof::compress
