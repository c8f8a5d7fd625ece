#include "symbols/plt_names.h"

#include "base/byte_reader.h"
#include "symbols/string_table.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include <elf.h>

namespace sentry_prof::symbols {
namespace {

constexpr uint64_t kMaxEntry_bytes = 16;
// Of .plt.got without endbr64, and less than any other has before its jump.
constexpr uint64_t kMinEntry_bytes = 8;
constexpr uint64_t kRelaPiece_bytes = 2730 * sizeof(Elf64_Rela);  // 64 KiB

// An entry that one of the addresses lies in.
struct Entry {
  LinkAddress slot;  // the word with the function's address
  size_t asked = 0;  // which of the addresses
  uint32_t symbol = STN_UNDEF;
  uint32_t name_offset = 0;  // in the string table
};

bool skip_if(Bytes& code, std::initializer_list<uint8_t> prefix) {
  const bool is_there =
      code.size() >= prefix.size() &&
      std::ranges::equal(prefix, code.first(prefix.size()), {}, {}, std::to_integer<uint8_t>);
  if (is_there) code = code.subspan(prefix.size());
  return is_there;
}

// What `code`, which begins at `begin`, jumps by, if it is an entry.
std::optional<LinkAddress> slot_of_entry(Bytes code, LinkAddress begin) {
  const uint64_t end = begin.value + code.size();
  skip_if(code, {0xf3, 0x0f, 0x1e, 0xfa});              // endbr64
  const bool has_number = skip_if(code, {0x41, 0xbb});  // mold: mov $index,%r11d
  if (has_number) code = code.subspan(std::min<size_t>(code.size(), sizeof(uint32_t)));
  skip_if(code, {0xf2});                                  // bnd
  if (!skip_if(code, {0xff, 0x25})) return std::nullopt;  // jmp *displacement(%rip)
  ByteReader reader(code);
  const auto displacement = static_cast<int32_t>(reader.u32());
  if (!reader.ok()) return std::nullopt;
  const uint64_t next = end - code.size() + sizeof(displacement);
  return LinkAddress{next + static_cast<uint64_t>(int64_t{displacement})};
}

std::optional<LinkAddress> slot_at(const ByteSource& file, const elf::Section& plt,
                                   uint64_t offset) {
  for (const uint64_t entry_bytes : {kMinEntry_bytes, kMaxEntry_bytes}) {
    const uint64_t begin = offset - offset % entry_bytes;
    std::array<std::byte, kMaxEntry_bytes> bytes{};
    const std::span code = std::span(bytes).first(
        static_cast<size_t>(std::min(plt.size_bytes - begin, kMaxEntry_bytes)));
    if (!file.read_at(plt.file_offset + begin, code)) return std::nullopt;
    if (const auto slot = slot_of_entry(code, {plt.address.value + begin})) return slot;
  }
  return std::nullopt;
}

std::vector<Entry> entries_at(const ByteSource& file, const elf::PltSections& plt,
                              std::span<const LinkAddress> addresses) {
  std::vector<Entry> entries;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto section = std::ranges::find_if(plt.code, [&](const auto& code) {
      return code && addresses[i].value - code->address.value < code->size_bytes;
    });
    if (section == plt.code.end()) continue;
    const uint64_t offset = addresses[i].value - (*section)->address.value;
    if (const auto slot = slot_at(file, **section, offset)) entries.push_back({*slot, i});
  }
  return entries;
}

bool has_symbol(const Entry& entry) { return entry.symbol != STN_UNDEF; }

// Entries by their slots in ascending order. The first relocation of a slot counts: of any others
// nothing is looked at but the first entry.
void take_relocation(ByteReader& in, std::span<Entry> entries) {
  const LinkAddress slot{in.u64()};
  const uint64_t info = in.u64();
  in.skip(sizeof(Elf64_Sxword));  // r_addend
  const auto type = ELF64_R_TYPE(info);
  const auto symbol = static_cast<uint32_t>(ELF64_R_SYM(info));
  const bool is_of_function = type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
  if (!is_of_function || symbol == STN_UNDEF) return;
  auto entry = std::ranges::lower_bound(entries, slot, {}, &Entry::slot);
  if (entry == entries.end() || has_symbol(*entry)) return;
  for (; entry != entries.end() && entry->slot == slot; ++entry) {
    entry->symbol = symbol;
  }
}

void find_symbols(const ByteSource& file, const std::optional<elf::Section>& relocations,
                  std::span<Entry> entries, SymbolBudget& budget) {
  if (!relocations) return;
  if (relocations->size_bytes > budget.table_bytes) {
    ++budget.tables_cut;
    return;
  }
  budget.table_bytes -= relocations->size_bytes;
  const uint64_t end = relocations->size_bytes - relocations->size_bytes % sizeof(Elf64_Rela);
  std::vector<std::byte> piece;
  for (uint64_t begin = 0; begin < end; begin += kRelaPiece_bytes) {
    piece.resize(static_cast<size_t>(std::min(kRelaPiece_bytes, end - begin)));
    if (!file.read_at(relocations->file_offset + begin, piece)) return;
    ByteReader in(piece);
    while (!in.at_end()) take_relocation(in, entries);
  }
}

void read_name_offsets(const ByteSource& file, const elf::Section& symbols,
                       std::span<Entry> entries) {
  for (Entry& entry : entries) {
    const uint64_t offset = uint64_t{entry.symbol} * sizeof(Elf64_Sym);
    std::array<std::byte, sizeof(uint32_t)> name{};  // st_name comes first
    const bool is_read = has_symbol(entry) && offset < symbols.size_bytes &&
                         file.read_at(symbols.file_offset + offset, name);
    if (is_read) entry.name_offset = ByteReader(name).u32();
  }
}

}  // namespace

std::vector<std::optional<std::string>> plt_targets_at(const ByteSource& file,
                                                       const elf::Layout& layout,
                                                       std::span<const LinkAddress> addresses,
                                                       SymbolBudget& budget) {
  std::vector<std::optional<std::string>> targets(addresses.size());
  if (layout.machine != EM_X86_64 || !layout.is_64_bit || !layout.dynsym) return targets;
  std::vector<Entry> entries = entries_at(file, layout.plt, addresses);
  if (entries.empty()) return targets;

  std::ranges::sort(entries, {}, &Entry::slot);
  find_symbols(file, layout.plt.relocations, entries, budget);
  // .plt.got is of functions whose address is taken as well.
  if (!std::ranges::all_of(entries, has_symbol)) {
    find_symbols(file, layout.rela_dyn, entries, budget);
  }
  read_name_offsets(file, layout.dynsym->symbols, entries);

  std::ranges::sort(entries, {}, &Entry::name_offset);
  StringTable strings(file, layout.dynsym->strings);
  for (const Entry& entry : entries) {
    if (const auto name = strings.at(entry.name_offset)) targets[entry.asked] = *name;
  }
  return targets;
}

}  // namespace sentry_prof::symbols
