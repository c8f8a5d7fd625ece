#include "compress/expander.h"

#include "compress/kinds.h"

#include <fmt/format.h>

namespace sentry_prof::compress {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kGzip = "\x1f\x8b"sv;
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd"sv;
constexpr std::string_view kXz =
    "\xfd\x37\x7a\x58"sv;  // of six bytes (The .xz File Format, 2.1.1.1)
// 0x184D2A50 to 0x184D2A5F, little endian: a frame to be skipped, which pzstd writes first (RFC
// 8878, 3.1.2).
constexpr std::string_view kSkippableTail = "\x2a\x4d\x18"sv;

bool begins_skippable_frame(std::string_view head) {
  return head.size() >= kMagic_bytes && (static_cast<unsigned char>(head[0]) & 0xf0) == 0x50 &&
         head.substr(1).starts_with(kSkippableTail);
}

}  // namespace

Compression detect_compression(std::string_view head) {
  if (head.starts_with(kGzip)) return Compression::Gzip;
  if (head.starts_with(kZstd) || begins_skippable_frame(head)) return Compression::Zstd;
  if (head.starts_with(kXz)) return Compression::Xz;
  return Compression::None;
}

std::unique_ptr<Expander> make_expander(Compression compression) {
  switch (compression) {
    case Compression::Gzip:
      return make_gzip_expander();
    case Compression::Zlib:
      return make_zlib_expander();
    case Compression::Xz:
      return make_xz_expander();
    default:
      return make_zstd_expander();
  }
}

Result<std::vector<std::byte>> expand_whole(Compression compression,
                                            std::span<const std::byte> bytes, size_t max_bytes) {
  std::vector<std::byte> whole;
  const auto sink = [&](std::string_view piece) {
    if (piece.size() > max_bytes - whole.size()) return false;
    const auto more = std::as_bytes(std::span(piece));
    whole.insert(whole.end(), more.begin(), more.end());
    return true;
  };
  const auto expander = make_expander(compression);
  const auto fed =
      expander->feed({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, sink);
  if (!fed) return tl::unexpected(fed.error());
  if (!*fed) {
    return fail(ErrorCode::LimitExceeded,
                fmt::format("it expands to more than {} bytes", max_bytes));
  }
  if (auto end = expander->finish(); !end) return tl::unexpected(std::move(end.error()));
  return whole;
}

}  // namespace sentry_prof::compress
