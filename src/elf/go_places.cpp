#include "elf/go_places.h"

#include "base/byte_reader.h"
#include "base/checked.h"
#include "elf/relative_relocations.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <elf.h>

namespace sentry_prof::elf {
namespace {

// Docker's daemon (Debian 12) has 24 MB.
constexpr uint64_t kMaxSearched_bytes = 64u << 20;
constexpr uint64_t kPiece_bytes = 256u << 10;
constexpr uint64_t kAlignment = 32;         // of runtime.pclntab up to Go 1.25
constexpr uint64_t kHeaderTextOffset = 24;  // textStart: behind two numbers
// minpc, maxpc and text: behind a pointer, six slices and a pointer.
constexpr uint64_t kModuleTextOffset = 160;

std::optional<Section> search_table(const ByteSource& file, const Section& section) {
  const uint64_t first = (kAlignment - section.address.value % kAlignment) % kAlignment;
  const uint64_t end = std::min(section.size_bytes, kMaxSearched_bytes);
  std::vector<std::byte> piece;
  for (uint64_t begin = first; begin < end; begin += kPiece_bytes) {
    piece.resize(static_cast<size_t>(std::min(kPiece_bytes, end - begin)));
    if (!file.read_at(section.file_offset + begin, piece)) return std::nullopt;
    for (size_t i = 0; i + sizeof(uint64_t) <= piece.size(); i += kAlignment) {
      if (!is_go_table(Bytes(piece).subspan(i))) continue;
      const uint64_t offset = begin + i;
      return Section{{section.address.value + offset},
                     section.file_offset + offset,
                     section.size_bytes - offset,
                     kAlignment};
    }
  }
  return std::nullopt;
}

// Words of `section` as the loader leaves them to a program that is not moved. Go's and GNU's
// linkers store the addends of relocations in place, LLVM's leaves zeros there. False if they
// cannot be read.
bool read_words(const ByteSource& file, const Layout& layout, const Section& section,
                uint64_t offset, std::span<uint64_t> words) {
  if (!range_fits<uint64_t>(offset, words.size_bytes(), section.size_bytes) ||
      !file.read_at(section.file_offset + offset, std::as_writable_bytes(words))) {
    return false;
  }
  const bool is_left_to_loader =
      std::ranges::all_of(words, [](uint64_t word) { return word == 0; });
  if (is_left_to_loader && layout.rela_dyn) {
    apply_relative_relocations(file, *layout.rela_dyn, {section.address.value + offset}, words);
  }
  return true;
}

// Go 1.26 has moved it out of the table, where it took a relocation.
std::optional<GoText> find_text(const ByteSource& file, const Layout& layout,
                                const Section& table) {
  std::array<uint64_t, 1> text{};
  if (!layout.go.module) {
    const bool is_read = read_words(file, layout, table, kHeaderTextOffset, text);
    return is_read && text[0] != 0 ? std::optional(GoText{text[0], 0, 0}) : std::nullopt;
  }
  std::array<uint64_t, 3> words{};
  const bool is_read = read_words(file, layout, *layout.go.module, kModuleTextOffset, words);
  const auto [min_pc, max_pc, begin] = words;
  if (!is_read || begin == 0 || max_pc == 0) return std::nullopt;
  return GoText{begin, min_pc, max_pc};
}

bool is_searched(const Layout& layout) {
  return !layout.go.functions && layout.go.is_of_go && layout.go.data_rel_ro;
}

}  // namespace

bool is_go_table(Bytes header) {
  ByteReader in(header);
  const uint32_t magic = in.u32();
  const uint16_t padding = in.u16();
  const uint8_t quantum = in.u8();
  const uint8_t pointer_bytes = in.u8();
  return (magic == kGo118Magic || magic == kGo120Magic) && padding == 0 && quantum == 1 &&
         pointer_bytes == 8;
}

bool may_have_go_functions(const Layout& layout) {
  const bool is_of_machine =
      layout.machine == EM_X86_64 && layout.is_64_bit && layout.order == std::endian::little;
  return is_of_machine && (layout.go.functions || is_searched(layout));
}

uint64_t go_search_bytes(const Layout& layout) {
  if (!may_have_go_functions(layout) || !is_searched(layout)) return 0;
  return std::min(layout.go.data_rel_ro->size_bytes, kMaxSearched_bytes);
}

std::optional<GoPlaces> find_go_places(const ByteSource& file, const Layout& layout) {
  if (!may_have_go_functions(layout)) return std::nullopt;
  const auto functions =
      is_searched(layout) ? search_table(file, *layout.go.data_rel_ro) : layout.go.functions;
  if (!functions) return std::nullopt;
  return GoPlaces{*functions, find_text(file, layout, *functions)};
}

}  // namespace sentry_prof::elf
