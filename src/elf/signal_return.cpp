#include "elf/signal_return.h"

#include "base/byte_reader.h"
#include "base/checked.h"

#include <array>
#include <optional>

#include <elf.h>

namespace sentry_prof::elf {

namespace {

constexpr uint64_t kInstructionBytes = 4;
constexpr uint32_t kMovX8RtSigreturn = 0xd2801168;
constexpr uint32_t kSvc0 = 0xd4000001;

// Where the handler returns to, sp points at the kernel's struct rt_sigframe (arch/arm64/kernel/
// signal.c): 128 bytes of siginfo and a struct ucontext (uapi/asm/ucontext.h), whose machine
// context begins 176 bytes in: fault_address, regs[31], sp, pc (uapi/asm/sigcontext.h).
constexpr int64_t kRegistersOffset = 128 + 176 + 8;
constexpr unsigned kStackPointer = 31, kProgramCounter = 32;  // in the order of sigcontext, too

std::optional<uint32_t> instruction_at(const ByteSource& file, const Layout& layout,
                                       uint64_t address) {
  for (const Segment& segment : layout.segments) {
    const uint64_t inside = address - segment.vaddr.value;
    if (!segment.is_executable || address < segment.vaddr.value) continue;
    if (inside >= segment.file_bytes || segment.file_bytes - inside < kInstructionBytes) continue;
    std::array<std::byte, kInstructionBytes> bytes{};
    uint64_t offset = 0;
    if (!checked_add(segment.file_offset, inside, offset)) continue;
    if (file.read_at(offset, bytes)) return ByteReader(bytes).u32();
  }
  return std::nullopt;
}

bool is_signal_return(const ByteSource& file, const Layout& layout, uint64_t address) {
  return instruction_at(file, layout, address) == kMovX8RtSigreturn &&
         instruction_at(file, layout, address + kInstructionBytes) == kSvc0;
}

// The first of the two instructions. A return address is that of the first, less one.
std::optional<uint64_t> first_instruction(const ByteSource& file, const Layout& layout,
                                          uint64_t pc) {
  const uint64_t aligned = (pc + 1) & ~(kInstructionBytes - 1);
  for (const uint64_t begin : {aligned, aligned - kInstructionBytes}) {
    if (is_signal_return(file, layout, begin)) return begin;
  }
  return std::nullopt;
}

}  // namespace

bool signal_return_row(const ByteSource& file, const Layout& layout, LinkAddress pc,
                       unwind::Row& row) {
  if (layout.machine != EM_AARCH64 || layout.order != std::endian::little) return false;
  const std::optional<uint64_t> begin = first_instruction(file, layout, pc.value);
  if (!begin) return false;
  const uint32_t work = row.work;
  row = {};
  row.work = work + 1;
  row.begin = {*begin - 1};
  row.end = {*begin + 2 * kInstructionBytes};
  row.cfa_kind = unwind::CfaKind::RegisterOffset;
  row.cfa_register = kStackPointer;
  row.return_address_register = kProgramCounter;
  row.is_signal_frame = true;
  for (unsigned reg = 0; reg <= kProgramCounter; ++reg) {
    row.rules[reg] = {.kind = unwind::RuleKind::AtCfaOffset,
                      .offset = kRegistersOffset + int64_t{8} * reg};
  }
  return true;
}

}  // namespace sentry_prof::elf
