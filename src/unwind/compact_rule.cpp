#include "unwind/compact_rule.h"

namespace sentry_prof::unwind {
namespace {

constexpr CompactRule kFull{.kind = CompactKind::Full};

bool to_words(int64_t offset_bytes, int16_t& words) {
  if (offset_bytes % 8 != 0) return false;
  const int64_t quotient = offset_bytes / 8;
  if (quotient < INT16_MIN || quotient > INT16_MAX) return false;
  words = static_cast<int16_t>(quotient);
  return true;
}

bool pack_cfa(const Row& row, ArchRegisters arch, CompactRule& rule) {
  if (row.cfa_kind != CfaKind::RegisterOffset) return false;
  if (row.cfa_register == arch.stack_pointer) {
    rule.kind = CompactKind::CfaFromSp;
  } else if (row.cfa_register == arch.frame_pointer) {
    rule.kind = CompactKind::CfaFromFp;
  } else {
    return false;
  }
  return to_words(row.cfa_offset, rule.cfa_words);
}

bool pack_far_cfa(const Row& row, ArchRegisters arch, CompactRule& rule) {
  const RegisterRule& return_address = row.rules[row.return_address_register];
  const bool is_far = row.cfa_kind == CfaKind::RegisterOffset &&
                      row.cfa_register == arch.stack_pointer && row.cfa_offset > 0 &&
                      row.cfa_offset % 8 == 0 && row.cfa_offset / 8 <= UINT32_MAX;
  if (!is_far || return_address.kind != RuleKind::AtCfaOffset || return_address.offset != -8) {
    return false;
  }
  const auto words = static_cast<uint32_t>(row.cfa_offset / 8);
  rule.kind = CompactKind::CfaFarFromSp;
  rule.cfa_words = static_cast<int16_t>(words & 0xffff);
  rule.return_address_words = static_cast<int16_t>(words >> 16);
  return true;
}

bool pack_frame_pointer(const RegisterRule& saved, CompactRule& rule) {
  switch (saved.kind) {
    case RuleKind::Unspecified:
    case RuleKind::SameValue:
      rule.fp = CompactFp::Same;
      return true;
    case RuleKind::Undefined:
      rule.fp = CompactFp::Unknown;
      return true;
    case RuleKind::AtCfaOffset:
      rule.fp = CompactFp::Saved;
      return to_words(saved.offset, rule.fp_words);
    default:
      return false;
  }
}

bool is_unchanged(const RegisterRule& rule) {
  return rule.kind == RuleKind::Unspecified || rule.kind == RuleKind::SameValue;
}

// A leaf without a frame, or a function before it has made its frame or after it has left it.
bool pack_link_register(const Row& row, ArchRegisters arch, CompactRule& rule) {
  const bool is_leaf = row.return_address_register == arch.link_register &&
                       rule.kind == CompactKind::CfaFromSp &&
                       is_unchanged(row.rules[arch.frame_pointer]);
  if (is_leaf) rule.kind = CompactKind::LinkFromSp;
  return is_leaf;
}

bool pack_return_address(const Row& row, ArchRegisters arch, CompactRule& rule) {
  const RegisterRule& saved = row.rules[row.return_address_register];
  if (is_unchanged(saved)) return pack_link_register(row, arch, rule);
  return saved.kind == RuleKind::AtCfaOffset && to_words(saved.offset, rule.return_address_words);
}

}  // namespace

CompactRule compact_rule_of(const Row& row, ArchRegisters arch) {
  if (row.return_address_register >= kRegisterCount) return {.kind = CompactKind::Unsupported};
  if (row.rules[row.return_address_register].kind == RuleKind::Undefined)
    return {.kind = CompactKind::Root};
  if (row.is_signal_frame) return kFull;
  // Without a rule of its own the caller's stack pointer is the CFA.
  if (row.rules[arch.stack_pointer].kind != RuleKind::Unspecified) return kFull;
  CompactRule rule;
  const bool fits = ((pack_cfa(row, arch, rule) && pack_return_address(row, arch, rule)) ||
                     pack_far_cfa(row, arch, rule)) &&
                    pack_frame_pointer(row.rules[arch.frame_pointer], rule);
  return fits ? rule : kFull;
}

CompactRule compact_rule_of(RowStatus status) {
  switch (status) {
    case RowStatus::Root:
      return {.kind = CompactKind::Root};
    case RowStatus::OtherStack:
      return {.kind = CompactKind::OtherStack};
    case RowStatus::Malformed:
      return {.kind = CompactKind::Malformed};
    case RowStatus::Unsupported:
      return {.kind = CompactKind::Unsupported};
    case RowStatus::Found:
      return kFull;
    case RowStatus::NoCfi:
      break;
  }
  return {.kind = CompactKind::NoCfi};
}

}  // namespace sentry_prof::unwind
