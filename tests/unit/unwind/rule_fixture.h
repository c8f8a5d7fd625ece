// A function's code and the rules that it may have. Encodings as gas writes them.
#pragma once

#include "support/fake_cfi.h"
#include "unwind/rule_from_code.h"

#include <cstdint>
#include <initializer_list>

namespace sentry_prof::test {

using namespace sentry_prof::unwind;

inline constexpr uint64_t kFunctionBegin = 0x1000;

struct Function {
  explicit Function(std::initializer_list<int> bytes) { code.put(kFunctionBegin, bytes); }

  CompactRule at(uint64_t offset) {
    work = 0;
    return rule_from_code(code, {kFunctionBegin + offset}, work, kMaxInstructionsOfFile);
  }

  FakeCode code;
  uint32_t work = 0;
};

inline CompactRule from_sp(int16_t cfa_words) {
  return {.kind = CompactKind::CodeFromSp, .cfa_words = cfa_words, .return_address_words = -1};
}

inline CompactRule from_fp(int16_t cfa_words) {
  CompactRule rule = from_sp(cfa_words);
  rule.kind = CompactKind::CodeFromFp;
  return rule;
}

inline CompactRule saving_fp(CompactRule rule, int16_t fp_words) {
  rule.fp = CompactFp::Saved;
  rule.fp_words = fp_words;
  return rule;
}

inline CompactRule without_fp(CompactRule rule) {
  rule.fp = CompactFp::Unknown;
  return rule;
}

inline constexpr CompactRule kNeverReturns{.kind = CompactKind::RootBehindNoCall};

inline bool is_none(CompactRule rule) { return rule == CompactRule{}; }

}  // namespace sentry_prof::test
