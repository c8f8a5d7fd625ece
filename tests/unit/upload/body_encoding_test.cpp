#include "upload/body_encoding.h"

#include "support/catch2.h"

#include <string>

#include <zlib.h>
#include <zstd.h>

using namespace sentry_prof::upload;

namespace {

std::string gunzipped(const std::string& packed, size_t size) {
  z_stream stream{};
  REQUIRE(::inflateInit2(&stream, 15 + 16) == Z_OK);  // gzip only
  std::string out(size + 1, '\0');
  std::string input = packed;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(::inflate(&stream, Z_FINISH) == Z_STREAM_END);
  CHECK(stream.avail_in == 0);
  out.resize(stream.total_out);
  ::inflateEnd(&stream);
  return out;
}

std::string unzstd(const std::string& packed) {
  const auto size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  REQUIRE(size < 100'000'000);
  std::string out(size, '\0');
  CHECK(ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size()) == size);
  return out;
}

// Compressible and not, over several pieces of output.
std::string text_of(size_t size) {
  std::string text(size, '\0');
  uint32_t state = 1;
  for (size_t i = 0; i < size; ++i) {
    state = state * 1664525 + 1013904223;
    text[i] = i % 3 == 0 ? static_cast<char>(state >> 24) : 'a';
  }
  return text;
}

}  // namespace

TEST_CASE("What is packed is what comes out again", "[body_encoding]") {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{1000}, size_t{64 * 1024}, size_t{1'000'000}}) {
    INFO(size);
    const std::string text = text_of(size);
    const auto gzip = encode_body(text, BodyEncoding::Gzip);
    REQUIRE(gzip);
    CHECK(gunzipped(*gzip, size) == text);
    const auto zstd = encode_body(text, BodyEncoding::Zstd);
    REQUIRE(zstd);
    CHECK(unzstd(*zstd) == text);
    CHECK(encode_body(text, BodyEncoding::Identity) == text);
  }
}

TEST_CASE("Packing makes text smaller, and names itself", "[body_encoding]") {
  const std::string text(100'000, 'a');
  CHECK(encode_body(text, BodyEncoding::Gzip)->size() < 1000);
  CHECK(encode_body(text, BodyEncoding::Zstd)->size() < 1000);
  CHECK(content_encoding(BodyEncoding::Gzip) == "gzip");
  CHECK(content_encoding(BodyEncoding::Zstd) == "zstd");
  CHECK(content_encoding(BodyEncoding::Identity).empty());
}
