// Everything that is read from an image file, over bytes that the fuzzer makes up. Nothing may
// crash or run on, and what a layout says lies within the file.
#include "elf/cfi_table.h"
#include "elf/function_starts.h"
#include "elf/go_function_table.h"
#include "elf/identity.h"
#include "elf/layout.h"
#include "elf/packed_section.h"
#include "elf/signal_return.h"
#include "fuzz/require.h"
#include "support/piecewise_source.h"
#include "symbols/symbol_names.h"

#include <algorithm>
#include <vector>

using namespace sentry_prof;
using fuzz::require;

namespace {

void require_within(const std::optional<elf::Section>& section, uint64_t file_size_bytes) {
  if (!section) return;
  require(section->file_offset <= file_size_bytes);
  require(section->size_bytes <= file_size_bytes - section->file_offset);
}

void check_layout(const elf::Layout& layout, uint64_t file_size_bytes) {
  require(layout.segments.size() <= elf::Layout::kMaxSegments);
  require(layout.notes.size() <= elf::Layout::kMaxNotes);
  for (const elf::Segment& segment : layout.segments) {
    require_within(elf::Section{{}, segment.file_offset, segment.file_bytes}, file_size_bytes);
  }
  for (const elf::Section& note : layout.notes) require_within(note, file_size_bytes);
  for (const auto& section :
       {layout.text, layout.eh_frame, layout.eh_frame_hdr, layout.debug_frame, layout.go.functions,
        layout.go.module, layout.go.data_rel_ro, layout.rela_dyn, layout.gnu_debugdata,
        layout.plt.relocations, layout.plt.code[0], layout.plt.code[1], layout.plt.code[2]}) {
    require_within(section, file_size_bytes);
  }
  if (layout.packed_debug_frame) {
    require_within(layout.packed_debug_frame->section, file_size_bytes);
  }
  for (const auto& table : {layout.symtab, layout.dynsym}) {
    if (!table) continue;
    require_within(table->symbols, file_size_bytes);
    require_within(table->strings, file_size_bytes);
  }
}

// Addresses in ascending order, at and round the places that the file itself states.
std::vector<LinkAddress> addresses_of(const elf::Layout& layout) {
  std::vector<LinkAddress> addresses = {{0}, {1}, {UINT64_MAX}};
  for (const elf::Segment& segment : layout.segments) {
    for (uint64_t offset : {0, 1, 0x40, 0x1000})
      addresses.push_back({segment.vaddr.value + offset});
  }
  if (layout.text) addresses.push_back(layout.text->address);
  for (const auto& plt : layout.plt.code) {
    if (plt) addresses.insert(addresses.end(), {plt->address, {plt->address.value + 16}});
  }
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

// What is compressed expands to no more than it may.
void check_debug_data(const ByteSource& file, const elf::Layout& layout) {
  constexpr uint64_t kLimit_bytes = 1 << 20;
  uint64_t left_bytes = 3 * kLimit_bytes;
  const elf::Expansion expansion{kLimit_bytes, left_bytes};
  if (const auto frames = elf::read_debug_frame(file, layout, expansion)) {
    require(frames->debug_frame.bytes.size() <= kLimit_bytes);
  }
  require(left_bytes <= 3 * kLimit_bytes);
  if (!layout.gnu_debugdata) return;
  const auto inner = elf::unpack_debugdata(file, layout, expansion);
  require(left_bytes <= 3 * kLimit_bytes);
  if (!inner) return;
  require((*inner)->size_bytes() <= kLimit_bytes);
  if (const auto inner_layout = elf::read_layout(**inner)) {
    check_layout(*inner_layout, (*inner)->size_bytes());
  }
}

void check_mappings(const elf::Layout& layout) {
  constexpr uint64_t kBegin = 0x7f0000000000;
  for (const elf::Segment& segment : layout.segments) {
    const uint64_t offset = segment.file_offset & ~uint64_t{0xfff};
    const auto bias = elf::bias_of_mapping(layout, {kBegin}, 0x1000, offset);
    if (bias) require(bias->value % 0x1000 == 0);
  }
}

void check_signal_returns(const ByteSource& file, const elf::Layout& layout,
                          const std::vector<LinkAddress>& addresses) {
  for (const LinkAddress address : addresses) {
    unwind::Row row;
    if (elf::signal_return_row(file, layout, address, row)) require(row.is_signal_frame);
  }
}

void check_go_functions(const ByteSource& file, const elf::Layout& layout,
                        const std::vector<LinkAddress>& addresses) {
  constexpr uint64_t kLimit_bytes = 1 << 20;
  const auto table = elf::GoFunctionTable::open(file, layout, kLimit_bytes);
  if (!table) return;
  require((*table)->memory_bytes() <= kLimit_bytes);
  for (const LinkAddress address : addresses) {
    unwind::Row row;
    const bool is_found = (*table)->row_at(address, row) == unwind::RowStatus::Found;
    if (is_found && !row.is_signal_frame) {
      require(row.begin.value <= address.value && address.value < row.end.value);
      require(row.cfa_offset >= 0);
    }
    require(row.work < 1 << 18);
    const auto name = (*table)->name_at(address, 100);
    require(!name || (!name->empty() && name->size() <= 100));
  }
}

// Null without unwind tables. Half of the addresses are looked up before: an index may be made.
std::shared_ptr<const elf::FunctionStarts> function_starts_of(
    const ByteSource& file, const elf::Layout& layout, const std::vector<LinkAddress>& addresses) {
  auto sections = elf::read_cfi_sections(file, layout);
  if (!sections) return nullptr;
  const elf::CfiTable table(std::move(*sections));
  unwind::Row row;
  for (size_t i = 0; i < addresses.size() / 2; ++i) table.row_at(addresses[i], row);
  auto starts = table.function_starts();
  for (const LinkAddress address : addresses) {
    const auto function = starts->function_at(address);
    if (!function || function->begin.value == 0) continue;
    require(starts->has_begin_in({function->begin.value - 1}, address));
  }
  return starts;
}

// What is left in the file gives the same rows as what was copied.
void check_rows(Bytes bytes, const elf::Layout& layout, const std::vector<LinkAddress>& addresses) {
  const auto file =
      std::make_shared<test::PiecewiseSource>(std::vector<std::byte>(bytes.begin(), bytes.end()));
  auto copied = elf::read_cfi_sections(*file, layout);
  auto left = elf::open_cfi_sections(file, layout);
  require(copied.has_value() == left.has_value());
  if (!copied) return;
  const elf::CfiTable table(std::move(*copied));
  const elf::CfiTable table_in_file(std::move(*left));
  for (const LinkAddress address : addresses) {
    unwind::Row row, row_in_file;
    const unwind::RowStatus status = table.row_at(address, row);
    require(table_in_file.row_at(address, row_in_file) == status);
    if (status != unwind::RowStatus::Found) continue;
    require(row.begin == row_in_file.begin && row.cfa_offset == row_in_file.cfa_offset);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const MemoryByteSource file({bytes.begin(), bytes.end()});
  const auto layout = elf::read_layout(file);
  if (!layout) return 0;
  check_layout(*layout, size);
  check_mappings(*layout);

  const elf::Identity identity = elf::read_identity(file, *layout);
  require(identity.build_id.size() <= 64 &&
          identity.code_id.size() == 2 * identity.build_id.size());
  const auto addresses = addresses_of(*layout);
  check_signal_returns(file, *layout, addresses);
  check_go_functions(file, *layout, addresses);
  symbols::SymbolBudget budget;
  const auto starts = function_starts_of(file, *layout, addresses);
  for (const auto& name : symbols::names_at(file, *layout, addresses, budget, starts.get())) {
    require(!name || (!name->empty() && name->size() <= 4096));
  }
  check_rows(bytes, *layout, addresses);
  check_debug_data(file, *layout);
  return 0;
}
