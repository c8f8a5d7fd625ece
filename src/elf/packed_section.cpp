#include "elf/packed_section.h"

#include "base/byte_reader.h"
#include "compress/expander.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <elf.h>

namespace sentry_prof::elf {
namespace {

// Of <elf.h> since glibc 2.36.
constexpr uint32_t kCompressZlib = 1;  // ELFCOMPRESS_ZLIB
constexpr uint32_t kCompressZstd = 2;  // ELFCOMPRESS_ZSTD

using compress::Compression;

struct Packing {
  Compression compression = Compression::None;
  uint64_t size_bytes = 0;  // expanded
};

Result<std::vector<std::byte>> read_stored(const ByteSource& file, const Section& section,
                                           const Expansion& expansion) {
  if (section.size_bytes > std::min(expansion.max_bytes, expansion.left_bytes)) {
    return fail(ErrorCode::LimitExceeded, "a compressed section is too large");
  }
  std::vector<std::byte> bytes(static_cast<size_t>(section.size_bytes));
  if (!file.read_at(section.file_offset, bytes)) {
    return fail(ErrorCode::Io, "a compressed section cannot be read from the file");
  }
  return bytes;
}

Compression compression_of(uint32_t type) {
  if (type == kCompressZlib) return Compression::Zlib;
  return type == kCompressZstd ? Compression::Zstd : Compression::None;
}

// Elf32_Chdr or Elf64_Chdr.
Packing read_elf_header(ByteReader& reader, bool is_64_bit) {
  Packing packing;
  packing.compression = compression_of(reader.u32());
  if (is_64_bit) reader.skip(4);
  packing.size_bytes = is_64_bit ? reader.u64() : reader.u32();
  reader.skip(is_64_bit ? 8 : 4);  // ch_addralign
  return packing;
}

Packing read_gnu_header(ByteReader& reader) {
  const Bytes magic = reader.bytes(4);
  const std::string_view text(reinterpret_cast<const char*>(magic.data()), magic.size());
  Packing packing{text == "ZLIB" ? Compression::Zlib : Compression::None, 0};
  for (int i = 0; i < 8; ++i) packing.size_bytes = packing.size_bytes << 8 | reader.u8();
  return packing;
}

// What may come of as many as are stored, which read_stored() has let through.
uint64_t most_bytes(const Expansion& expansion, size_t stored_bytes) {
  return std::min(expansion.max_bytes, expansion.left_bytes - stored_bytes);
}

// Paid for before it is begun, what is stored as well: nothing comes of a million empty blocks. Of
// what fails it is not known how much was expanded.
Result<std::vector<std::byte>> expand(Compression compression, Bytes stored, uint64_t max_bytes,
                                      const Expansion& expansion) {
  expansion.left_bytes -= stored.size() + max_bytes;
  auto whole = compress::expand_whole(compression, stored, static_cast<size_t>(max_bytes));
  if (whole) expansion.left_bytes += max_bytes - whole->size();
  return whole;
}

}  // namespace

Result<std::vector<std::byte>> unpack_section(const ByteSource& file, const Layout& layout,
                                              const PackedSection& packed,
                                              const Expansion& expansion) {
  const auto stored = read_stored(file, packed.section, expansion);
  if (!stored) return tl::unexpected(stored.error());
  ByteReader reader(*stored, layout.order);
  const Packing packing =
      packed.has_gnu_header ? read_gnu_header(reader) : read_elf_header(reader, layout.is_64_bit);
  if (!reader.ok()) return fail(ErrorCode::Malformed, "a compressed section has no whole header");
  if (packing.compression == Compression::None) {
    return fail(ErrorCode::Unsupported, "a section is compressed in an unknown way");
  }
  if (packing.size_bytes > most_bytes(expansion, stored->size())) {
    return fail(ErrorCode::LimitExceeded, "a compressed section is too large");
  }
  auto whole =
      expand(packing.compression, reader.bytes(reader.remaining()), packing.size_bytes, expansion);
  if (whole && whole->size() != packing.size_bytes) {
    return fail(ErrorCode::Malformed, "a compressed section is smaller than its header says");
  }
  return whole;
}

Result<std::shared_ptr<const ByteSource>> unpack_debugdata(const ByteSource& file,
                                                           const Layout& layout,
                                                           const Expansion& expansion) {
  const auto stored = read_stored(file, *layout.gnu_debugdata, expansion);
  if (!stored) return tl::unexpected(stored.error());
  auto whole = expand(Compression::Xz, *stored, most_bytes(expansion, stored->size()), expansion);
  if (!whole) return tl::unexpected(std::move(whole.error()));
  return std::make_shared<MemoryByteSource>(std::move(*whole));
}

}  // namespace sentry_prof::elf
