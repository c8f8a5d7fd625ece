#include "compress/expander.h"

#include "compress/kinds.h"

namespace sentry_prof::compress {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kGzip = "\x1f\x8b"sv;
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd"sv;
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
  return Compression::None;
}

std::unique_ptr<Expander> make_expander(Compression compression) {
  return compression == Compression::Gzip ? make_gzip_expander() : make_zstd_expander();
}

}  // namespace sentry_prof::compress
