#include "compress/expander.h"

#include "support/catch2.h"

#include <algorithm>
#include <string>
#include <vector>

#include <zlib.h>
#include <zstd.h>

namespace sentry_prof::compress {

namespace {

using namespace std::string_literals;

std::string gzipped(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd_compressed(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3);
  REQUIRE_FALSE(ZSTD_isError(size));
  out.resize(size);
  return out;
}

struct Expanded {
  std::string text;
  std::string error;  // empty: whole
  bool was_stopped = false;
};

// Fed in pieces of `piece_bytes`; the sink takes at most `limit_bytes`.
Expanded expand(const std::string& bytes, size_t piece_bytes = 65536,
                size_t limit_bytes = SIZE_MAX) {
  Expanded result;
  const auto expander = make_expander(detect_compression(bytes));
  const auto sink = [&](std::string_view piece) {
    if (piece.size() > limit_bytes - result.text.size()) return false;
    result.text += piece;
    return true;
  };
  for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
    const auto more = expander->feed(std::string_view(bytes).substr(at, piece_bytes), sink);
    if (!more) {
      result.error = more.error().message;
      return result;
    }
    if (!*more) {
      result.was_stopped = true;
      return result;
    }
  }
  if (auto end = expander->finish(); !end) result.error = end.error().message;
  return result;
}

std::string some_text() {
  std::string text;
  for (int i = 0; i < 40000; ++i) text += std::to_string(i * 7919 % 10007) + ",";
  return text;
}

}  // namespace

TEST_CASE("The compression is told by the first bytes") {
  CHECK(detect_compression(gzipped("a")) == Compression::Gzip);
  CHECK(detect_compression(zstd_compressed("a")) == Compression::Zstd);
  CHECK(detect_compression("\x5f\x2a\x4d\x18rest") == Compression::Zstd);  // a skippable frame
  CHECK(detect_compression("\xfd\x37zXZrest") == Compression::Xz);
  CHECK(detect_compression("{\"version\":\"2\"}") == Compression::None);
  CHECK(detect_compression("") == Compression::None);
  CHECK(detect_compression("\x1f") == Compression::None);
  CHECK(detect_compression("P*M\x17") == Compression::None);
}

TEST_CASE("Text comes back whole, however the pieces are cut") {
  const std::string text = some_text();
  for (const std::string& bytes : {gzipped(text), zstd_compressed(text)}) {
    for (const size_t piece_bytes : {size_t{1}, size_t{17}, size_t{65536}, bytes.size()}) {
      const Expanded expanded = expand(bytes, piece_bytes);
      CHECK(expanded.error.empty());
      CHECK(expanded.text == text);
    }
  }
}

TEST_CASE("Sizes around the size of a piece come back whole") {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{131071}, size_t{131072}, size_t{131073}, size_t{262144}}) {
    const std::string text(size, 'x');
    for (const std::string& bytes : {gzipped(text), zstd_compressed(text)}) {
      const Expanded expanded = expand(bytes);
      CHECK(expanded.error.empty());
      CHECK(expanded.text == text);
    }
  }
}

TEST_CASE("Members and frames behind each other are one text") {
  CHECK(expand(gzipped("one ") + gzipped("") + gzipped("two")).text == "one two");
  CHECK(expand(gzipped("one ") + gzipped("two"), 1).text == "one two");
  const std::string skippable = "\x50\x2a\x4d\x18\x03\0\0\0abc"s;
  const std::string frames =
      skippable + zstd_compressed("one ") + skippable + zstd_compressed("two");
  CHECK(expand(frames).text == "one two");
  CHECK(expand(frames, 1).text == "one two");
  CHECK(expand(frames).error.empty());
}

TEST_CASE("Zeros behind a gzip member are padding") {
  const Expanded expanded = expand(gzipped("text") + std::string(512, '\0'), 100);
  CHECK(expanded.text == "text");
  CHECK(expanded.error.empty());
}

TEST_CASE("A stream that is cut off anywhere is told") {
  for (const std::string& bytes : {gzipped("some text"), zstd_compressed("some text")}) {
    for (size_t size = kMagic_bytes; size < bytes.size(); ++size) {
      CHECK(expand(bytes.substr(0, size)).error.find("cut off") != std::string::npos);
    }
  }
}

TEST_CASE("Bytes behind the end are told") {
  CHECK(expand(gzipped("text") + "rubbish").error ==
        "there are bytes behind the end of the gzip data");
  CHECK(expand(gzipped("text") + std::string(3, '\0') + "{}").error ==
        "there are bytes behind the end of the gzip data");
  CHECK(expand(zstd_compressed("text") + "rubbish").error ==
        "there are bytes behind the end of the zstd data");
}

TEST_CASE("A damaged stream is told, with the bytes before the damage at most") {
  const std::string text = some_text();
  for (std::string bytes : {gzipped(text), zstd_compressed(text)}) {
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
    const Expanded expanded = expand(bytes);
    CHECK(expanded.error.find("damaged") != std::string::npos);
    CHECK(expanded.text.size() <= text.size());
  }
  std::string checksum = gzipped("text");
  checksum[checksum.size() - 6] ^= 1;
  CHECK(expand(checksum).error == "the gzip data is damaged (incorrect data check)");
}

TEST_CASE("A bomb stops where the receiver has enough") {
  const std::string zeros(32 << 20, '\0');
  for (const std::string& bytes : {gzipped(zeros), zstd_compressed(zeros)}) {
    const Expanded expanded = expand(bytes, 65536, 1 << 20);
    CHECK(expanded.was_stopped);
    CHECK(expanded.text.size() <= 1 << 20);
  }
}

TEST_CASE("A window above 128 MiB is refused, whatever the frame claims") {
  // Frame header without a content size: window descriptor with exponent 18, 2^28 bytes.
  const std::string header = "\x28\xb5\x2f\xfd\x00\x90"s;
  CHECK(expand(header + "\x01\x00\x00"s).error.find("128 MiB") != std::string::npos);
}

TEST_CASE("What is compressed twice is expanded once") {
  const std::string inner = gzipped("text");
  CHECK(expand(gzipped(inner)).text == inner);
}

}  // namespace sentry_prof::compress
