#include "cli/profile_input.h"

#include "compress/expander.h"
#include "formats/perf_data_header.h"
#include "os/input_file.h"
#include "sentry/text_kind.h"
#include "sentry_prof/limits.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sentry_prof::cli {

namespace {

// One piece of a file; a piece that has just been read is still in the CPU's cache when it is
// copied.
constexpr size_t kPiece_bytes = 256 * 1024;

// So much of a text tells an envelope from a profile.
constexpr size_t kHead_bytes = 64 * 1024;

// Without the server's limits: the positions and indices of a report have 32 bits.
constexpr uint64_t kMaxText_bytes = (uint64_t{1} << 32) - 1;

// The text as it grows. Which limit holds is known once its head is there.
class BoundedText {
 public:
  explicit BoundedText(InputLimit limit) : limit_(limit) {}

  // False: too large.
  bool append(std::string_view piece) {
    if (text_.size() < kHead_bytes) text_.append(take_front(piece, kHead_bytes - text_.size()));
    if (text_.size() < kHead_bytes) return true;
    decide();
    if (piece.size() > limit_bytes_ - text_.size()) return false;
    text_.append(piece);
    return true;
  }
  // The whole will have this many bytes.
  bool expect(uint64_t size_bytes) {
    if (size_bytes < kHead_bytes) return true;
    decide();
    if (size_bytes > limit_bytes_) return false;
    text_.reserve(size_bytes);
    return true;
  }

  std::string take() { return std::move(text_); }
  TooLarge too_large(std::optional<uint64_t> size_bytes) const {
    return {limit_bytes_, size_bytes, is_envelope_};
  }

 private:
  static std::string_view take_front(std::string_view& piece, size_t count) {
    const std::string_view front = piece.substr(0, count);
    piece.remove_prefix(front.size());
    return front;
  }
  void decide() {
    if (limit_bytes_ != 0) return;
    is_envelope_ = sentry::looks_like_envelope(text_);
    const bool is_of_envelope = is_envelope_ || limit_ == InputLimit::Envelope;
    limit_bytes_ = limit_ == InputLimit::None ? kMaxText_bytes
                   : is_of_envelope           ? limits::kMaxEnvelope_bytes
                                              : limits::kMaxItem_bytes;
  }

  InputLimit limit_;
  std::string text_;
  uint64_t limit_bytes_ = 0;  // 0: not decided
  bool is_envelope_ = false;
};

// The first bytes of a file, as many as there are up to kHead_bytes: a pipe may give fewer at a
// time.
Result<std::string> read_head(os::InputFile& file) {
  std::string head(kHead_bytes, '\0');
  size_t size = 0;
  while (size < head.size()) {
    const auto count = file.read(std::span(head).subspan(size));
    if (!count) return tl::unexpected(count.error());
    if (*count == 0) break;
    size += *count;
  }
  head.resize(size);
  return head;
}

ProfileInput refused(const BoundedText& text, std::optional<uint64_t> size_bytes) {
  return {"", text.too_large(size_bytes)};
}

Result<ProfileInput> read_plain(os::InputFile& file, std::string_view head, InputLimit limit) {
  BoundedText text(limit);
  text.append(head);
  const auto size_bytes = file.size_bytes();
  if (size_bytes && !text.expect(*size_bytes)) return refused(text, size_bytes);
  std::vector<char> piece(kPiece_bytes);
  for (;;) {
    const auto count = file.read(piece);
    if (!count) return tl::unexpected(count.error());
    if (*count == 0) return ProfileInput{text.take(), {}};
    if (!text.append({piece.data(), *count})) return refused(text, {});
  }
}

tl::unexpected<Error> fail_of(const os::InputFile& file, const Error& error) {
  const bool is_other_settings = error.code == ErrorCode::Unsupported;  // zstd --long, xz -9
  return fail(error.code, file.name() + ": " + error.message +
                              (is_other_settings ? ": expand it by hand" : ""));
}

Result<ProfileInput> read_compressed(os::InputFile& file, std::string_view head,
                                     compress::Expander& expander, InputLimit limit) {
  BoundedText text(limit);
  const auto sink = [&](std::string_view expanded) { return text.append(expanded); };
  auto more = expander.feed(head, sink);
  std::vector<char> piece(kPiece_bytes);
  while (more && *more) {
    const auto count = file.read(piece);
    if (!count) return tl::unexpected(count.error());
    if (*count == 0) {
      if (auto end = expander.finish(); !end) return fail_of(file, end.error());
      return ProfileInput{text.take(), {}};
    }
    more = expander.feed({piece.data(), *count}, sink);
  }
  if (!more) return fail_of(file, more.error());
  return refused(text, {});
}

}  // namespace

Result<ProfileInput> read_profile_input(const std::string& path, InputLimit limit) {
  using compress::Compression;
  auto file = os::InputFile::open(path);
  if (!file) return tl::unexpected(file.error());
  const auto head = read_head(*file);
  if (!head) return tl::unexpected(head.error());
  const Compression compression = compress::detect_compression(*head);
  if (compression == Compression::None) {
    if (formats::is_perf_data(*head)) {
      return fail(ErrorCode::Malformed,
                  file->name() + ": is a perf.data file: sentry-prof convert makes profiles of it");
    }
    return read_plain(*file, *head, limit);
  }
  const auto expander = compress::make_expander(compression);
  auto input = read_compressed(*file, *head, *expander, limit);
  if (input && formats::is_perf_data(input->text)) {
    return fail(ErrorCode::Malformed, file->name() +
                                          ": is a compressed perf.data file: expand it first, then "
                                          "sentry-prof convert makes profiles of it");
  }
  if (input && compress::detect_compression(input->text) != Compression::None) {
    return fail(ErrorCode::Malformed,
                file->name() + ": is compressed twice; expand it once by hand");
  }
  return input;
}

}  // namespace sentry_prof::cli
