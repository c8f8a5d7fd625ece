#include "elf/signal_return.h"

#include "base/checked.h"
#include "unwind/code_source.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include <elf.h>

namespace sentry_prof::elf {

namespace {

// The instructions, and where the second begins.
struct Call {
  std::string_view code;
  uint64_t second = 0;
};

struct Machine {
  std::initializer_list<Call> calls;
  unsigned stack_pointer = 0;  // DWARF numbers
  unsigned program_counter = 0;
};

using namespace std::string_view_literals;

const Machine kAarch64{.calls = {{"\x68\x11\x80\xd2\x01\x00\x00\xd4"sv, 4}},
                       .stack_pointer = 31,
                       .program_counter = 32};
const Machine kX86_64{
    .calls = {{"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"sv, 7}, {"\xb8\x0f\x00\x00\x00\x0f\x05"sv, 5}},
    .stack_pointer = 7,
    .program_counter = 16};
constexpr size_t kLongestCall_bytes = 9;
// The farthest that a second instruction begins behind the first.
constexpr uint64_t kBefore_bytes = 7;

// The handler has returned: the stack pointer is at the kernel's struct rt_sigframe, or the rest of
// it. On aarch64 that is (arch/arm64/kernel/signal.c): 128 bytes of siginfo and a struct ucontext
// (uapi/asm/ucontext.h), whose machine context begins 176 bytes in: fault_address, regs[31], sp, pc
// (uapi/asm/sigcontext.h), in DWARF's order.
void save_registers_of_aarch64(unwind::Row& row) {
  constexpr int64_t kRegistersOffset = 128 + 176 + 8;
  for (unsigned reg = 0; reg <= kAarch64.program_counter; ++reg) {
    row.rules[reg] = {.kind = unwind::RuleKind::AtCfaOffset,
                      .offset = kRegistersOffset + int64_t{8} * reg};
  }
}

// On x86-64 (arch/x86/include/asm/sigframe.h) the address that the handler returned to,
// and a struct ucontext, whose machine context begins 40 bytes in (struct sigcontext_64).
void save_registers_of_x86_64(unwind::Row& row) {
  constexpr int64_t kRegistersOffset = 40;
  // r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip
  constexpr std::array<uint8_t, 17> kInOrder = {8, 9, 10, 11, 12, 13, 14, 15, 5,
                                                4, 6, 3,  1,  0,  2,  7,  16};
  for (size_t i = 0; i < kInOrder.size(); ++i) {
    row.rules[kInOrder[i]] = {.kind = unwind::RuleKind::AtCfaOffset,
                              .offset = kRegistersOffset + static_cast<int64_t>(8 * i)};
  }
}

const Machine* machine_of(const Layout& layout) {
  if (layout.order != std::endian::little) return nullptr;
  if (layout.machine == EM_AARCH64) return &kAarch64;
  return layout.machine == EM_X86_64 ? &kX86_64 : nullptr;
}

// The code around `pc` as far as it can hold the call, of one segment.
struct Window {
  uint64_t begin = 0;
  std::array<char, kBefore_bytes + 1 + kLongestCall_bytes> bytes{};
  size_t size = 0;

  bool has(uint64_t address, std::string_view code) const {
    const uint64_t inside = address - begin;
    return address >= begin && range_fits<uint64_t>(inside, code.size(), size) &&
           std::string_view(bytes.data(), size)
               .substr(static_cast<size_t>(inside))
               .starts_with(code);
  }
};

std::optional<Window> read_window(const ByteSource& file, const Layout& layout, uint64_t pc) {
  const Segment* segment = layout.segment_with({pc}, 1, Layout::Which::Executable);
  if (segment == nullptr) return std::nullopt;
  Window window;
  window.begin = pc - std::min(kBefore_bytes, pc - segment->vaddr.value);
  window.size = static_cast<size_t>(std::min<uint64_t>(
      window.bytes.size(), segment->vaddr.value + segment->file_bytes - window.begin));
  const auto bytes = std::as_writable_bytes(std::span(window.bytes).first(window.size));
  if (!file.read_at(segment->offset_of({window.begin}), bytes)) return std::nullopt;
  return window;
}

struct Place {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// A return address is that of the first instruction, less one.
std::optional<Place> place_in(const Window& window, const Machine& machine, uint64_t pc) {
  for (const Call& call : machine.calls) {
    for (const uint64_t begin : {pc + 1, pc, pc - call.second}) {
      if (window.has(begin, call.code)) return Place{begin, begin + call.code.size()};
    }
  }
  return std::nullopt;
}

std::optional<Place> place_at(const ByteSource& file, const Layout& layout, const Machine& machine,
                              uint64_t pc) {
  const std::optional<Window> window = read_window(file, layout, pc);
  return window ? place_in(*window, machine, pc) : std::nullopt;
}

}  // namespace

bool is_signal_return(const ByteSource& file, const Layout& layout, LinkAddress pc) {
  const Machine* machine = machine_of(layout);
  return machine != nullptr && place_at(file, layout, *machine, pc.value).has_value();
}

bool signal_return_row(const ByteSource& file, const Layout& layout, LinkAddress pc,
                       unwind::Row& row) {
  const Machine* machine = machine_of(layout);
  if (machine == nullptr) return false;
  row.work += unwind::kReadCodeWork;
  const uint32_t work = row.work;
  const std::optional<Place> place = place_at(file, layout, *machine, pc.value);
  if (!place) return false;
  row = {};
  row.work = work;
  row.begin = {place->begin - 1};
  row.end = {place->end};
  row.cfa_kind = unwind::CfaKind::RegisterOffset;
  row.cfa_register = static_cast<uint16_t>(machine->stack_pointer);
  row.return_address_register = static_cast<uint16_t>(machine->program_counter);
  row.is_signal_frame = true;
  if (layout.machine == EM_AARCH64) {
    save_registers_of_aarch64(row);
  } else {
    save_registers_of_x86_64(row);
  }
  return true;
}

}  // namespace sentry_prof::elf
