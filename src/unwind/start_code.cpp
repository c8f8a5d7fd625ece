#include "unwind/start_code.h"

#include "base/byte_reader.h"
#include "unwind/call_site.h"
#include "unwind/code_window.h"
#include "unwind/x86_instruction.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace sentry_prof::unwind {
namespace {

// glibc's have 11 up to the call, musl's 5 and another 8 behind it.
constexpr unsigned kMaxStartInstructions = 16;

using Opcode = std::array<uint8_t, 3>;
constexpr Opcode kLeaToRdi{0x48, 0x8d, 0x3d};  // lea x(%rip),%rdi
constexpr Opcode kMovToRdi{0x48, 0xc7, 0xc7};  // mov $x,%rdi

bool begins_with(Bytes code, const Opcode& opcode) {
  return std::ranges::equal(code.first(opcode.size()), std::as_bytes(std::span(opcode)));
}

// Or may leave: those of X86Effect from Return on.
bool leaves(X86Effect effect) {
  return effect >= X86Effect::Return && effect != X86Effect::CallsKernel;
}

// What the instruction puts into %rdi, if it is one of those that linkers leave there.
std::optional<LinkAddress> address_in_rdi(Bytes instruction, LinkAddress next) {
  constexpr size_t kSize_bytes = sizeof(Opcode) + sizeof(int32_t);
  if (instruction.size() != kSize_bytes) return std::nullopt;
  const uint64_t base = begins_with(instruction, kLeaToRdi) ? next.value : 0;
  if (base == 0 && !begins_with(instruction, kMovToRdi)) return std::nullopt;
  int32_t operand = 0;
  std::memcpy(&operand, instruction.data() + sizeof(Opcode), sizeof operand);
  return LinkAddress{base + static_cast<uint64_t>(int64_t{operand})};
}

bool never_goes_on(X86Effect effect) { return leaves(effect) && effect != X86Effect::Branch; }

}  // namespace

std::optional<LinkAddress> main_function(const CodeSource& code, uint32_t& work) {
  LinkAddress pc = code.entry_point();
  if (pc.value == 0) return std::nullopt;
  CodeWindow window(code, work);
  bool has_called = false;
  for (unsigned i = 0; i < kMaxStartInstructions; ++i) {
    const Bytes bytes = window.at(pc);
    const auto instruction = decode_x86(bytes);
    if (!instruction || leaves(instruction->effect)) return std::nullopt;
    const Bytes encoded = bytes.first(instruction->size_bytes);
    pc.value += instruction->size_bytes;
    if (const auto address = address_in_rdi(encoded, pc)) return address;
    const CallSite call = call_before(encoded);
    if (call.kind == CallKind::None) continue;
    // musl's has a function of C do the rest.
    if (call.kind != CallKind::Direct || std::exchange(has_called, true)) return std::nullopt;
    pc = {call.target(pc.value)};
  }
  return std::nullopt;
}

bool start_code_ends_before(const CodeSource& code, LinkAddress pc, uint32_t& work) {
  LinkAddress at = code.entry_point();
  if (at.value == 0 || pc.value - at.value >= kStartCode_bytes) return false;
  CodeWindow window(code, work);
  LinkAddress farthest = at;  // that was jumped to
  while (at < pc) {
    const auto instruction = decode_x86(window.at(at));
    if (!instruction) return false;
    at.value += instruction->size_bytes;
    const bool has_target =
        instruction->effect == X86Effect::Jump || instruction->effect == X86Effect::Branch;
    const int64_t distance = has_target ? instruction->operand : 0;
    if (distance > 0) {
      farthest = std::max(farthest, LinkAddress{at.value + static_cast<uint64_t>(distance)});
    }
    if (never_goes_on(instruction->effect) && farthest < at) return at <= pc;
  }
  return false;
}

}  // namespace sentry_prof::unwind
