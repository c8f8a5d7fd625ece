#include "elf/relative_relocations.h"

#include "base/byte_reader.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <elf.h>

namespace sentry_prof::elf {
namespace {

// 700,000 relocations; Docker's daemon (Debian 12) has 244,114.
constexpr uint64_t kMaxRelocations_bytes = 16u << 20;
constexpr uint64_t kRelaPiece_bytes = 2730 * sizeof(Elf64_Rela);  // 64 KiB

void apply_one(ByteReader& in, LinkAddress first, std::span<uint64_t> words) {
  const uint64_t offset = in.u64() - first.value;
  const uint64_t info = in.u64();
  const uint64_t addend = in.u64();
  const bool is_of_a_word =
      offset % sizeof(uint64_t) == 0 && offset / sizeof(uint64_t) < words.size();
  if (is_of_a_word && ELF64_R_TYPE(info) == R_X86_64_RELATIVE) {
    words[static_cast<size_t>(offset / sizeof(uint64_t))] = addend;
  }
}

}  // namespace

void apply_relative_relocations(const ByteSource& file, const Section& rela_dyn, LinkAddress first,
                                std::span<uint64_t> words) {
  const uint64_t size_bytes = std::min(rela_dyn.size_bytes, kMaxRelocations_bytes);
  const uint64_t end = size_bytes - size_bytes % sizeof(Elf64_Rela);
  std::vector<std::byte> piece;
  for (uint64_t begin = 0; begin < end; begin += kRelaPiece_bytes) {
    piece.resize(static_cast<size_t>(std::min(kRelaPiece_bytes, end - begin)));
    if (!file.read_at(rela_dyn.file_offset + begin, piece)) return;
    ByteReader in(piece);
    while (!in.at_end()) apply_one(in, first, words);
  }
}

}  // namespace sentry_prof::elf
