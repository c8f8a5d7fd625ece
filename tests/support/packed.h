// Compressed bytes, as ELF files hold them, for tests.
#pragma once

#include "support/elf_builder.h"

#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

namespace sentry_prof::test {

using PackedBytes = std::vector<std::byte>;

inline PackedBytes zlib_packed(std::span<const std::byte> bytes) {
  PackedBytes out(compressBound(bytes.size()));
  uLongf size = out.size();
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 6) != Z_OK) {
    throw std::runtime_error("zlib");
  }
  out.resize(size);
  return out;
}

inline PackedBytes zstd_packed(std::span<const std::byte> bytes) {
  PackedBytes out(ZSTD_compressBound(bytes.size()));
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3);
  if (ZSTD_isError(size)) throw std::runtime_error("zstd");
  out.resize(size);
  return out;
}

// `level` as xz(1) has it: memory grows with it.
inline PackedBytes xz_packed(std::span<const std::byte> bytes, uint32_t level = 6) {
  PackedBytes out(lzma_stream_buffer_bound(bytes.size()));
  size_t size = 0;
  if (lzma_easy_buffer_encode(
          level, LZMA_CHECK_CRC32, nullptr, reinterpret_cast<const uint8_t*>(bytes.data()),
          bytes.size(), reinterpret_cast<uint8_t*>(out.data()), &size, out.size()) != LZMA_OK) {
    throw std::runtime_error("xz");
  }
  out.resize(size);
  return out;
}

// The contents of a section with SHF_COMPRESSED. `type` is ELFCOMPRESS_*: 1 is zlib, 2 zstd.
inline PackedBytes with_compression_header(const PackedBytes& packed, uint64_t expanded_bytes,
                                           uint32_t type, ElfKind kind = {}) {
  ByteWriter writer(kind.order, kind.is_64_bit);
  writer.u32(type);
  if (kind.is_64_bit) writer.u32(0);
  return writer.word(expanded_bytes).word(8).raw(packed).bytes();
}

}  // namespace sentry_prof::test
