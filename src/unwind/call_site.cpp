#include "unwind/call_site.h"

#include "base/hash.h"
#include "unwind/code_source.h"
#include "unwind/rule_cache.h"
#include "unwind/x86_encoding.h"

#include <algorithm>

namespace sentry_prof::unwind {
namespace {

constexpr size_t kDirectCall_bytes = 5;

uint8_t byte_at(Bytes code, size_t index) { return std::to_integer<uint8_t>(code[index]); }

// `instruction` from its opcode to its end.
bool is_indirect_call(Bytes instruction) {
  if (byte_at(instruction, 0) != 0xff) return false;
  const Bytes operand = instruction.subspan(1);
  return ((byte_at(operand, 0) >> 3) & 7) == 2 && x86_operand_bytes(operand) == operand.size();
}

bool ends_with_indirect_call(Bytes code) {
  for (size_t size = 2; size <= std::min(code.size(), kLongestCall_bytes); ++size) {
    if (is_indirect_call(code.last(size))) return true;
  }
  return false;
}

CallSite read_site(const Module& module, const CodeSource& source, uint64_t runtime_pc,
                   uint32_t& work) {
  work += kReadCodeWork;
  std::array<std::byte, kLongestCall_bytes> code;
  const uint64_t room = runtime_pc - module.begin.value;
  const auto wanted =
      std::span(code).first(static_cast<size_t>(std::min<uint64_t>(code.size(), room)));
  const LinkAddress begin = to_link({runtime_pc - wanted.size()}, module.bias);
  return source.read_code(begin, wanted) ? call_before(wanted) : CallSite{};
}

}  // namespace

CallSite call_before(Bytes code) {
  const bool may_be_indirect = ends_with_indirect_call(code);
  if (code.size() >= kDirectCall_bytes) {
    ByteReader reader(code.last(kDirectCall_bytes), std::endian::little);
    if (reader.u8() == 0xe8) return {CallKind::Direct, may_be_indirect, reader.i32()};
  }
  return {may_be_indirect ? CallKind::Indirect : CallKind::None};
}

CallSite CallSites::before(const Module& module, const CodeSource* code, uint64_t runtime_pc,
                           uint32_t& work) {
  if (code == nullptr) return {};
  if (module.image == kNoImage) return read_site(module, *code, runtime_pc, work);
  const uint64_t key = RuleCache::key_of(module.image, to_link({runtime_pc}, module.bias));
  if (key == RuleCache::kNoKey) return read_site(module, *code, runtime_pc, work);
  Place& place = places_[spread_bits(key) >> kIndexShift];
  if (place.key != key) place = {key, read_site(module, *code, runtime_pc, work)};
  return place.site;
}

}  // namespace sentry_prof::unwind
