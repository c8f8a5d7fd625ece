#include "cfi_oracle.h"

#include "base/byte_reader.h"
#include "elf/cfi_table.h"
#include "elf/go_function_table.h"
#include "elf/layout.h"
#include "support/piecewise_source.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

namespace sentry_prof::elf_test {

namespace {

using elf::CfiTable;
using unwind::CfaKind;
using unwind::RegisterRule;
using unwind::Row;
using unwind::RowStatus;
using unwind::RuleKind;

using Ops = std::span<const Dwarf_Op>;

constexpr unsigned kAarch64RaSignState = 34;  // AADWARF64, section 4.1

// A file as libdw sees it.
class DwFile {
 public:
  DwFile(const std::string& path, OracleSection section)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    elf_version(EV_CURRENT);
    elf_ = elf_begin(fd_, ELF_C_READ_MMAP, nullptr);
    if (section == OracleSection::EhFrame) {
      cfi_ = dwarf_getcfi_elf(elf_);
    } else if ((dwarf_ = dwarf_begin_elf(elf_, DWARF_C_READ, nullptr)) != nullptr) {
      cfi_ = dwarf_getcfi(dwarf_);
    }
  }
  DwFile(const DwFile&) = delete;
  DwFile& operator=(const DwFile&) = delete;
  ~DwFile() {
    if (dwarf_ != nullptr) {
      dwarf_end(dwarf_);
    } else {
      dwarf_cfi_end(cfi_);
    }
    elf_end(elf_);
    close(fd_);
  }
  Dwarf_CFI* cfi() const { return cfi_; }

  // FDEs of the section of that name, those that cover nothing as well.
  uint64_t count_fdes(OracleSection section) const {
    const bool is_eh_frame = section == OracleSection::EhFrame;
    Elf_Data* data = contents_of(is_eh_frame ? ".eh_frame" : ".debug_frame");
    const auto* ident = reinterpret_cast<const unsigned char*>(elf_getident(elf_, nullptr));
    uint64_t count = 0;
    Dwarf_CFI_Entry entry;
    Dwarf_Off next = 0;
    for (Dwarf_Off offset = 0; data != nullptr; offset = next) {
      const int status = dwarf_next_cfi(ident, data, is_eh_frame, offset, &next, &entry);
      if (status > 0) break;
      if (status == 0 && !dwarf_cfi_cie_p(&entry)) ++count;
      if (status < 0 && next <= offset) break;
    }
    return count;
  }

 private:
  Elf_Data* contents_of(std::string_view name) const {
    size_t names = 0;
    if (elf_getshdrstrndx(elf_, &names) != 0) return nullptr;
    for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf_, scn)) != nullptr;) {
      GElf_Shdr header;
      if (gelf_getshdr(scn, &header) == nullptr) continue;
      const char* found = elf_strptr(elf_, names, header.sh_name);
      if (found != nullptr && name == found) return elf_rawdata(scn, nullptr);
    }
    return nullptr;
  }

  int fd_;
  Elf* elf_ = nullptr;
  Dwarf* dwarf_ = nullptr;
  Dwarf_CFI* cfi_ = nullptr;
};

struct FrameDeleter {
  void operator()(Dwarf_Frame* frame) const { std::free(frame); }
};
using FramePtr = std::unique_ptr<Dwarf_Frame, FrameDeleter>;

FramePtr libdw_frame(Dwarf_CFI* cfi, uint64_t pc) {
  Dwarf_Frame* frame = nullptr;
  return FramePtr(dwarf_cfi_addrframe(cfi, pc, &frame) == 0 ? frame : nullptr);
}

// How many bytes an operation's fixed-size operand has; 0 if it has none, or a LEB128 number.
unsigned fixed_operand_bytes(uint8_t atom) {
  switch (atom) {
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_pick:
    case DW_OP_deref_size:
      return 1;
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_skip:
    case DW_OP_bra:
      return 2;
    case DW_OP_const4u:
    case DW_OP_const4s:
      return 4;
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_addr:
      return 8;
    default:
      return 0;
  }
}

uint64_t fixed_operand(ByteReader& reader, unsigned bytes) {
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) value |= uint64_t{reader.u8()} << (8 * i);
  return value;
}

// libdw hands out decoded operations; ours are read here, one after the other, and must be these:
// assemblers write numbers in the fewest bytes, but libgcrypt's and libmvec's are padded.
bool same_operation(const Dwarf_Op& op, ByteReader& reader) {
  if (reader.u8() != op.atom) return false;
  if (const unsigned bytes = fixed_operand_bytes(op.atom); bytes != 0) {
    const uint64_t mask = bytes == 8 ? UINT64_MAX : (uint64_t{1} << (8 * bytes)) - 1;
    return fixed_operand(reader, bytes) == (op.number & mask);
  }
  if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) {
    return reader.sleb128() == static_cast<int64_t>(op.number);
  }
  if (op.atom == DW_OP_consts) return reader.sleb128() == static_cast<int64_t>(op.number);
  if (op.atom == DW_OP_constu || op.atom == DW_OP_plus_uconst) {
    return reader.uleb128() == op.number;
  }
  if (op.atom == DW_OP_bregx) {
    return reader.uleb128() == op.number && reader.sleb128() == static_cast<int64_t>(op.number2);
  }
  return true;
}

bool same_expression(Ops ops, Bytes bytes) {
  ByteReader reader(bytes);
  const bool are_same = std::all_of(ops.begin(), ops.end(),
                                    [&](const Dwarf_Op& op) { return same_operation(op, reader); });
  return are_same && reader.ok() && reader.at_end();
}

constexpr unsigned kAarch64LinkRegister = 30, kAarch64StackPointer = 31;

bool same_cfa(Dwarf_Frame* frame, const Row& row) {
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  // libdw (0.188, 0.192) has none behind an expression and a DW_CFA_def_cfa_offset. gcc 14 means
  // one where a frame in units of the vector length ends (libmvec: `add sp, sp, #16`, and the row
  // says 16).
  if (dwarf_frame_cfa(frame, &ops, &count) != 0) {
    return row.return_address_register == kAarch64LinkRegister &&
           row.cfa_kind == CfaKind::RegisterOffset && row.cfa_register == kAarch64StackPointer;
  }
  switch (row.cfa_kind) {
    case CfaKind::Unset:
      return count == 0;
    case CfaKind::RegisterOffset:
      return count == 1 && ops[0].atom == DW_OP_bregx && ops[0].number == row.cfa_register &&
             static_cast<int64_t>(ops[0].number2) == row.cfa_offset;
    case CfaKind::Expression:
      return same_expression({ops, count}, row.cfa_expression);
  }
  return false;
}

// [DW_OP_call_frame_cfa, DW_OP_plus_uconst offset]; the second only if the offset is not zero.
bool is_cfa_plus(Ops ops, int64_t offset) {
  if (ops.empty() || ops[0].atom != DW_OP_call_frame_cfa) return false;
  if (offset == 0) return ops.size() == 1;
  return ops.size() == 2 && ops[1].atom == DW_OP_plus_uconst &&
         static_cast<int64_t>(ops[1].number) == offset;
}

bool is_stack_value(Ops ops) { return !ops.empty() && ops.back().atom == DW_OP_stack_value; }

// Where the CFI says nothing, libdw applies the ABI's rules: the stack pointer is the CFA,
// registers that a callee saves have the same value, others are undefined or the same.
bool is_default(Ops ops) {
  return ops.empty() || (is_stack_value(ops) && is_cfa_plus(ops.first(ops.size() - 1), 0));
}

bool same_rule(Dwarf_Frame* frame, unsigned reg, const RegisterRule& rule) {
  Dwarf_Op memory[3];
  Dwarf_Op* begin = nullptr;
  size_t count = 0;
  if (dwarf_frame_register(frame, static_cast<int>(reg), memory, &begin, &count) != 0) return false;
  const Ops ops(begin, count);
  const Ops without_last = count == 0 ? ops : ops.first(count - 1);
  switch (rule.kind) {
    case RuleKind::Unspecified:
      return is_default(ops);
    case RuleKind::Undefined:
      return count == 0 && begin == memory;
    case RuleKind::SameValue:
      return count == 0 && begin == nullptr;
    case RuleKind::AtCfaOffset:
      return is_cfa_plus(ops, rule.offset);
    case RuleKind::ValCfaOffset:
      return is_stack_value(ops) && is_cfa_plus(without_last, rule.offset);
    case RuleKind::Register:
      return count == 1 && ops[0].atom == DW_OP_regx && ops[0].number == rule.source_register;
    // The CFA is pushed before the expression.
    case RuleKind::AtExpression:
      return count > 0 && ops[0].atom == DW_OP_call_frame_cfa &&
             same_expression(ops.subspan(1), rule.expression);
    case RuleKind::ValExpression:
      return count > 1 && ops[0].atom == DW_OP_call_frame_cfa && is_stack_value(ops) &&
             same_expression(without_last.subspan(1), rule.expression);
  }
  return false;
}

// Empty, or what differs. The row's begin is not compared but checked by stepping: after a
// DW_CFA_restore_state libdw gives the begin of the remembered row instead of the present one's.
std::string difference(Dwarf_Frame* frame, const Row& row) {
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  bool is_signal_frame = false;
  const int column = dwarf_frame_info(frame, &begin, &end, &is_signal_frame);
  if (begin > row.begin.value || end != row.end.value) {
    return fmt::format("libdw's row is {:#x}-{:#x}", begin, end);
  }
  if (column != row.return_address_register) return "return address column";
  if (is_signal_frame != row.is_signal_frame) return "signal frame";
  if (!same_cfa(frame, row)) return "CFA";
  for (unsigned reg = 0; reg < unwind::kRegisterCount; ++reg) {
    // libdw (0.188) reads over DW_CFA_AARCH64_negate_ra_state, which is all that makes this rule.
    if (reg == kAarch64RaSignState && row.rules[reg].kind == RuleKind::ValExpression) continue;
    if (!same_rule(frame, reg, row.rules[reg])) return fmt::format("register {}", reg);
  }
  return {};
}

class Comparison {
 public:
  Comparison(const CfiTable& table, Dwarf_CFI* cfi, unsigned stride)
      : table_(table), cfi_(cfi), stride_(stride) {}

  OracleResult run(uint64_t expected_fdes) {
    uint64_t visited = 0;
    uint64_t number = 0;
    table_.for_each_fde([&](LinkAddress begin, LinkAddress end) {
      ++visited;
      if (begin < end && number++ % stride_ == 0) compare_fde(begin.value, end.value);
    });
    if (visited != expected_fdes) {
      note(0, fmt::format("we see {} FDEs, libdw {}", visited, expected_fdes));
    }
    return result_;
  }

 private:
  void compare_fde(uint64_t begin, uint64_t end) {
    ++result_.fdes;
    for (uint64_t pc = begin; pc < end;) {
      const std::optional<uint64_t> next = compare_at(pc, pc, begin);
      ++result_.rows;
      if (!next || *next <= pc) return;
      compare_at(pc + (*next - pc) / 2, pc, begin);
      pc = *next;
    }
  }

  // Looks up an address in the row that begins at `row_begin`, of the FDE that begins at
  // `fde_begin`. The end of the row, if we have one.
  std::optional<uint64_t> compare_at(uint64_t pc, uint64_t row_begin, uint64_t fde_begin) {
    Row row;
    const RowStatus status = table_.row_at({pc}, row);
    const FramePtr frame = libdw_frame(cfi_, pc);
    if (status != RowStatus::Found || frame == nullptr) {
      if (status == RowStatus::Found || frame != nullptr) {
        note(pc, frame == nullptr ? "libdw has no row" : "we have no row");
      }
      return std::nullopt;
    }
    const std::string text = difference(frame.get(), row);
    if (!text.empty()) note(pc, text);
    if (row.function_begin.value != fde_begin)
      note(pc, fmt::format("our function begins at {:#x}", row.function_begin.value));
    if (row.begin.value != row_begin)
      note(pc, fmt::format("our row begins at {:#x}", row.begin.value));
    return row.end.value;
  }

  void note(uint64_t pc, const std::string& text) {
    if (result_.differences++ == 0) result_.first_difference = fmt::format("{:#x}: {}", pc, text);
  }

  const CfiTable& table_;
  Dwarf_CFI* cfi_;
  const unsigned stride_;
  OracleResult result_;
};

std::vector<std::byte> read_whole(const std::string& path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> bytes(stream ? static_cast<size_t>(stream.tellg()) : 0);
  stream.seekg(0);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

Result<elf::CfiSections> sections_of(const std::string& path, OracleSection section) {
  const auto file = std::make_shared<test::PiecewiseSource>(read_whole(path));
  const Result<elf::Layout> layout = elf::read_layout(*file);
  if (!layout) return tl::unexpected(layout.error());
  Result<elf::CfiSections> sections = elf::open_cfi_sections(file, *layout);
  if (!sections) return sections;
  if (section == OracleSection::EhFrame) {
    sections->debug_frame = {};
  } else {
    sections->eh_frame = {};
    sections->eh_frame_hdr = {};
  }
  return sections;
}

Result<std::vector<LinkAddress>> go_rows(const ByteSource& file, const elf::Layout& layout) {
  uint64_t left_bytes = 128 << 20;
  auto sections = elf::read_debug_frame(file, layout, {64 << 20, left_bytes});
  if (!sections) return tl::unexpected(sections.error());
  const CfiTable table(std::move(*sections));
  std::vector<LinkAddress> begins;
  table.for_each_fde([&](LinkAddress begin, LinkAddress end) {
    Row row;
    for (LinkAddress pc = begin; pc.value < end.value; pc = row.end) {
      if (table.row_at(pc, row) != RowStatus::Found || row.end.value <= pc.value) return;
      begins.push_back(pc);
    }
  });
  return begins;
}

std::string go_difference(const elf::GoFunctionTable& table, Dwarf_CFI* cfi, LinkAddress pc) {
  Row row;
  const RowStatus status = table.row_at(pc, row);
  if (status == RowStatus::Root || status == RowStatus::OtherStack) return {};
  const FramePtr frame = libdw_frame(cfi, pc.value);
  if (status != RowStatus::Found || frame == nullptr) return "one has no row";
  return row.is_signal_frame || same_cfa(frame.get(), row) ? "" : "CFA";
}

}  // namespace

OracleResult compare_go_functions(const std::string& path) {
  const MemoryByteSource file(read_whole(path));
  const auto layout = elf::read_layout(file);
  if (!layout) return {.skipped = layout.error().message};
  const auto table = elf::GoFunctionTable::open(file, *layout, 64 << 20);
  if (!table) return {.skipped = table.error().message};
  const DwFile dwarf(path, OracleSection::DebugFrame);
  const auto begins = go_rows(file, *layout);
  if (dwarf.cfi() == nullptr || !begins) return {.skipped = "no .debug_frame"};
  OracleResult result;
  for (const LinkAddress pc : *begins) {
    ++result.rows;
    const std::string text = go_difference(**table, dwarf.cfi(), pc);
    if (text.empty()) continue;
    if (result.differences++ == 0) {
      result.first_difference = fmt::format("{:#x}: {}", pc.value, text);
    }
  }
  return result;
}

OracleResult compare_with_libdw(const std::string& path, OracleSection section, unsigned stride) {
  const DwFile file(path, section);
  if (file.cfi() == nullptr) return {.skipped = "libdw has no CFI"};
  Result<elf::CfiSections> sections = sections_of(path, section);
  if (!sections) return {.differences = 1, .first_difference = sections.error().message};
  const CfiTable table(std::move(*sections));
  return Comparison(table, file.cfi(), stride).run(file.count_fdes(section));
}

}  // namespace sentry_prof::elf_test
