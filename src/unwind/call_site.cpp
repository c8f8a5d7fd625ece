#include "unwind/call_site.h"

#include "base/hash.h"
#include "unwind/code_source.h"
#include "unwind/rule_cache.h"
#include "unwind/x86_encoding.h"

#include <algorithm>

namespace sentry_prof::unwind {
namespace {

constexpr size_t kDirectCall_bytes = 5;
// Without prefixes, which may stand before: FF /2 with SIB and 32 bits of displacement.
constexpr size_t kLongestX86Call_bytes = 7;
constexpr size_t kAarch64Instruction_bytes = 4;

uint8_t byte_at(Bytes code, size_t index) { return std::to_integer<uint8_t>(code[index]); }

// `instruction` from its opcode to its end.
bool is_indirect_call(Bytes instruction) {
  if (byte_at(instruction, 0) != 0xff) return false;
  const Bytes operand = instruction.subspan(1);
  return ((byte_at(operand, 0) >> 3) & 7) == 2 && x86_operand_bytes(operand) == operand.size();
}

bool ends_with_indirect_call(Bytes code) {
  for (size_t size = 2; size <= std::min(code.size(), kLongestX86Call_bytes); ++size) {
    if (is_indirect_call(code.last(size))) return true;
  }
  return false;
}

CallSite call_before_x86(Bytes code) {
  const bool may_be_indirect = ends_with_indirect_call(code);
  if (code.size() >= kDirectCall_bytes) {
    ByteReader reader(code.last(kDirectCall_bytes), std::endian::little);
    if (reader.u8() == 0xe8) return {CallKind::Direct, may_be_indirect, reader.i32()};
  }
  return {may_be_indirect ? CallKind::Indirect : CallKind::None};
}

CallSite call_before_aarch64(Bytes code) {
  if (code.size() < kAarch64Instruction_bytes) return {CallKind::None};
  ByteReader reader(code.last(kAarch64Instruction_bytes), std::endian::little);
  const uint32_t instruction = reader.u32();
  if ((instruction & 0xfc00'0000) == 0x9400'0000) {  // bl: 26 bits, in instructions from this one
    const auto words = static_cast<int32_t>(instruction << 6) >> 6;
    return {CallKind::Direct, false,
            words * int32_t{kAarch64Instruction_bytes} - int32_t{kAarch64Instruction_bytes}};
  }
  const bool is_blr = (instruction & 0xffff'fc1f) == 0xd63f'0000;
  const bool is_signed_blr = (instruction & 0xfeff'f800) == 0xd63f'0800;
  return {is_blr || is_signed_blr ? CallKind::Indirect : CallKind::None};
}

}  // namespace

CallSite call_before(Bytes code, Arch arch) {
  return arch == Arch::Aarch64 ? call_before_aarch64(code) : call_before_x86(code);
}

// What is known of an image holds for every piece of it that is mapped, so what lies before the
// piece is read, too; at its code's begin there is nothing before.
CallSite CallSites::read(const Module& module, const CodeSource& source, uint64_t runtime_pc,
                         uint32_t& work) const {
  work += kReadCodeWork;
  const size_t longest_bytes =
      arch_ == Arch::Aarch64 ? kAarch64Instruction_bytes : kLongestX86Call_bytes;
  std::array<std::byte, kLongestX86Call_bytes> bytes;
  const auto ends_at_pc = [&](uint64_t size_bytes) {
    const auto code = std::span(bytes).first(static_cast<size_t>(size_bytes));
    return source.read_code(to_link({runtime_pc - size_bytes}, module.bias), code);
  };
  if (module.image != kNoImage && ends_at_pc(longest_bytes)) {
    return call_before(std::span(bytes).first(longest_bytes), arch_);
  }
  const uint64_t room = std::min<uint64_t>(runtime_pc - module.begin.value, longest_bytes);
  if (!ends_at_pc(room)) return {};
  return call_before(std::span(bytes).first(static_cast<size_t>(room)), arch_);
}

CallSite CallSites::before(const Module& module, const CodeSource* code, uint64_t runtime_pc,
                           uint32_t& work) {
  if (code == nullptr) return {};
  if (module.image == kNoImage) return read(module, *code, runtime_pc, work);
  const uint64_t key = RuleCache::key_of(module.image, to_link({runtime_pc}, module.bias));
  if (key == RuleCache::kNoKey) return read(module, *code, runtime_pc, work);
  Place& place = places_[spread_bits(key) >> kIndexShift];
  if (place.key == key) return place.site;
  const CallSite site = read(module, *code, runtime_pc, work);
  if (site.kind != CallKind::Unknown) place = {key, site};
  return site;
}

}  // namespace sentry_prof::unwind
