#include "elf/go_places.h"

#include "base/byte_reader.h"
#include "base/checked.h"
#include "elf/relative_relocations.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace sentry_prof::elf {
namespace {

// Docker's daemon (Debian 12) has 24 MB.
constexpr uint64_t kMaxSearched_bytes = 64u << 20;
constexpr uint64_t kPiece_bytes = 256u << 10;
constexpr uint64_t kAlignment = 32;         // of runtime.pclntab up to Go 1.25
constexpr uint64_t kHeaderTextOffset = 24;  // textStart: behind two numbers
// minpc, maxpc and text: behind a pointer, six slices and a pointer.
constexpr uint64_t kModuleTextOffset = 160;

bool is_table(Bytes bytes) {
  ByteReader in(bytes);
  const uint32_t magic = in.u32();
  const uint16_t padding = in.u16();
  const uint8_t quantum = in.u8();
  const uint8_t pointer_bytes = in.u8();
  return (magic == kGo118Magic || magic == kGo120Magic) && padding == 0 && quantum == 1 &&
         pointer_bytes == 8;
}

std::optional<Section> search(const ByteSource& file, const Section& section) {
  const uint64_t first = (kAlignment - section.address.value % kAlignment) % kAlignment;
  const uint64_t end = std::min(section.size_bytes, kMaxSearched_bytes);
  std::vector<std::byte> piece;
  for (uint64_t begin = first; begin < end; begin += kPiece_bytes) {
    piece.resize(static_cast<size_t>(std::min(kPiece_bytes, end - begin)));
    if (!file.read_at(section.file_offset + begin, piece)) return std::nullopt;
    for (size_t i = 0; i + sizeof(uint64_t) <= piece.size(); i += kAlignment) {
      if (!is_table(Bytes(piece).subspan(i, sizeof(uint64_t)))) continue;
      const uint64_t offset = begin + i;
      return Section{{section.address.value + offset},
                     section.file_offset + offset,
                     section.size_bytes - offset,
                     kAlignment};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Section> find_go_functions(const ByteSource& file, const Layout& layout) {
  if (layout.go_functions) return layout.go_functions;
  return may_have_go_functions(layout) ? search(file, *layout.data_rel_ro) : std::nullopt;
}

bool may_have_go_functions(const Layout& layout) {
  return layout.go_functions || (layout.go_build_info && layout.data_rel_ro);
}

Result<GoText> read_go_text(const ByteSource& file, const Layout& layout) {
  const std::optional<Section>& module = layout.go_module;
  std::array<uint64_t, 3> words{};
  if (!module || !range_fits<uint64_t>(kModuleTextOffset, sizeof words, module->size_bytes)) {
    return fail(ErrorCode::Unsupported, "a table of Go's functions without places");
  }
  if (!file.read_at(module->file_offset + kModuleTextOffset,
                    std::as_writable_bytes(std::span(words)))) {
    return fail(ErrorCode::Io, "where Go's code begins cannot be read");
  }
  const LinkAddress first{module->address.value + kModuleTextOffset};
  if (words[2] == 0) apply_relative_relocations(file, layout, first, words);
  return GoText{words[2], words[0], words[1]};
}

uint64_t go_text_of_loader(const ByteSource& file, const Layout& layout, const Section& table) {
  uint64_t text = 0;
  const LinkAddress place{table.address.value + kHeaderTextOffset};
  apply_relative_relocations(file, layout, place, std::span(&text, 1));
  return text;
}

}  // namespace sentry_prof::elf
