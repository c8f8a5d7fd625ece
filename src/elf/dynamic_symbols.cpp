#include "elf/dynamic_symbols.h"

#include "base/checked.h"

#include <algorithm>

#include <elf.h>

namespace sentry_prof::elf {
namespace {

constexpr uint64_t kMaxDynamic_bytes = 16 * 1024;  // real ones have some thirty entries
constexpr uint64_t kMaxBucket_bytes = 1 << 20;     // libLLVM with 45,000 symbols has 256 KiB
constexpr uint32_t kMaxSymbols = 1 << 24;

struct DynamicTags {
  uint64_t symbols = 0, strings = 0, strings_bytes = 0, hash = 0, gnu_hash = 0;
};

DynamicTags read_tags(const ByteSource& file, const Layout& layout, const Section& dynamic,
                      LoadBias relocated_by) {
  DynamicTags tags;
  std::vector<std::byte> bytes(
      static_cast<size_t>(std::min(dynamic.size_bytes, kMaxDynamic_bytes)));
  if (!file.read_at(dynamic.file_offset, bytes)) return tags;
  ByteReader reader(bytes, layout.order);
  while (reader.ok()) {
    const uint64_t tag = layout.is_64_bit ? reader.u64() : reader.u32();
    const uint64_t value = layout.is_64_bit ? reader.u64() : reader.u32();
    if (!reader.ok() || tag == DT_NULL) break;
    const uint64_t address = value - relocated_by.value;
    if (tag == DT_SYMTAB) tags.symbols = address;
    if (tag == DT_STRTAB) tags.strings = address;
    if (tag == DT_STRSZ) tags.strings_bytes = value;
    if (tag == DT_HASH) tags.hash = address;
    if (tag == DT_GNU_HASH) tags.gnu_hash = address;
  }
  return tags;
}

// `size_bytes` of the file that are loaded at `address`.
std::optional<Section> loaded_range(const Layout& layout, uint64_t address, uint64_t size_bytes) {
  if (size_bytes == 0) return std::nullopt;
  const Segment* segment = layout.segment_with({address}, size_bytes, Layout::Which::Any);
  if (segment == nullptr) return std::nullopt;
  return Section{{address}, segment->offset_of({address}), size_bytes};
}

std::vector<std::byte> read_loaded(const ByteSource& file, const Layout& layout, uint64_t address,
                                   uint64_t size_bytes) {
  const auto range = loaded_range(layout, address, size_bytes);
  if (!range) return {};
  std::vector<std::byte> bytes(static_cast<size_t>(size_bytes));
  return file.read_at(range->file_offset, bytes) ? bytes : std::vector<std::byte>{};
}

// The second word of DT_HASH is the number of symbols.
uint32_t count_by_hash(const ByteSource& file, const Layout& layout, uint64_t address) {
  const auto bytes = read_loaded(file, layout, address, 8);
  ByteReader reader(bytes, layout.order);
  reader.skip(4);
  return reader.u32();
}

// Follows the chain of the bucket with the highest symbol to its end, which has bit 0 set.
uint32_t end_of_chain(const ByteSource& file, const Layout& layout, uint64_t chains,
                      uint32_t first_hashed, uint32_t symbol) {
  constexpr uint32_t kMaxChainEntries = 4096;
  for (uint32_t i = 0; i < kMaxChainEntries; ++i, ++symbol) {
    const uint64_t address = chains + uint64_t{4} * (symbol - first_hashed);
    const auto bytes = read_loaded(file, layout, address, 4);
    if (bytes.empty()) return 0;
    if ((ByteReader(bytes, layout.order).u32() & 1) != 0) return symbol + 1;
  }
  return 0;
}

uint32_t count_by_gnu_hash(const ByteSource& file, const Layout& layout, uint64_t address) {
  const auto head = read_loaded(file, layout, address, 16);
  ByteReader reader(head, layout.order);
  const uint32_t bucket_count = reader.u32();
  const uint32_t first_hashed = reader.u32();
  const uint32_t bloom_words = reader.u32();
  const uint64_t bucket_bytes = uint64_t{4} * bucket_count;
  if (!reader.ok() || bucket_bytes == 0 || bucket_bytes > kMaxBucket_bytes) return 0;
  const uint64_t buckets = address + 16 + uint64_t{bloom_words} * (layout.is_64_bit ? 8 : 4);
  const auto bytes = read_loaded(file, layout, buckets, bucket_bytes);
  ByteReader bucket_reader(bytes, layout.order);
  uint32_t highest = 0;
  while (!bucket_reader.at_end()) highest = std::max(highest, bucket_reader.u32());
  if (highest < first_hashed) return first_hashed;
  return end_of_chain(file, layout, buckets + bucket_bytes, first_hashed, highest);
}

}  // namespace

std::optional<SymbolSection> find_dynamic_symbols(const ByteSource& file, const Layout& layout,
                                                  const Section& dynamic, LoadBias relocated_by) {
  const DynamicTags tags = read_tags(file, layout, dynamic, relocated_by);
  uint32_t count = 0;
  if (tags.hash != 0) count = count_by_hash(file, layout, tags.hash);
  if (count == 0 && tags.gnu_hash != 0) count = count_by_gnu_hash(file, layout, tags.gnu_hash);
  if (count == 0 || count > kMaxSymbols) return std::nullopt;
  const uint64_t entry_bytes = layout.is_64_bit ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  const auto symbols = loaded_range(layout, tags.symbols, count * entry_bytes);
  const auto strings = loaded_range(layout, tags.strings, tags.strings_bytes);
  if (!symbols || !strings) return std::nullopt;
  return SymbolSection{*symbols, *strings};
}

}  // namespace sentry_prof::elf
