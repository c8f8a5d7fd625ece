// Code that the fuzzer makes up, decoded and read on to its return from some of its bytes. Nothing
// may crash, read outside the code or run on; and a rule that is found keeps the promises of
// rule_from_code.h.
#include "base/byte_reader.h"
#include "fuzz/require.h"
#include "unwind/prologue.h"
#include "unwind/rule_from_code.h"
#include "unwind/x86_instruction.h"

#include <algorithm>
#include <vector>

using namespace sentry_prof;
using fuzz::require;
using namespace sentry_prof::unwind;

namespace {

constexpr size_t kMaxStarts = 16;
// An instruction may need a piece of the code to be read anew, in up to 17 tries at its end.
constexpr uint32_t kMaxWork = kMaxInstructionsOfFile * (4 + 17 * 64);

class FuzzedCode final : public CodeSource {
 public:
  FuzzedCode(LinkAddress begin, Bytes bytes) : begin_(begin), bytes_(bytes.begin(), bytes.end()) {}

  bool read_code(LinkAddress begin, std::span<std::byte> out) const override {
    const uint64_t at = begin.value - begin_.value;
    if (at > bytes_.size() || out.size() > bytes_.size() - at) return false;
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), out.size(), out.begin());
    return true;
  }

 private:
  LinkAddress begin_;
  std::vector<std::byte> bytes_;
};

// Of an exact allocation, so that the sanitizer sees a read one byte too far.
void check_decoding(Bytes code) {
  const std::vector<std::byte> copy(code.begin(), code.end());
  const auto instruction = decode_x86(copy);
  if (!instruction) return;
  require(instruction->size_bytes >= 1 && instruction->size_bytes <= kLongestX86Instruction_bytes);
  require(instruction->size_bytes <= copy.size());
  // What stands behind it is none of its business.
  require(decode_x86(Bytes(copy).first(instruction->size_bytes)) == instruction);
  require(!decode_x86(Bytes(copy).first(instruction->size_bytes - 1)));
}

void check_is_one_of_code(CompactRule rule) {
  if (rule.kind == CompactKind::NoCfi) return require(rule == CompactRule{});
  if (rule.kind == CompactKind::RootBehindNoCall) {
    return require(rule == CompactRule{.kind = CompactKind::RootBehindNoCall});
  }
  if (rule.kind == CompactKind::CodeFromRegister) {
    return require((kX86FollowedRegisters >> rule.base_register() & 1) != 0);
  }
  const bool is_from_word_at_sp = rule.kind == CompactKind::CodeFromWordAtSp;
  if (is_from_word_at_sp || rule.kind == CompactKind::CodeFromWordAtFp) {
    return require(!is_from_word_at_sp || rule.return_address_words >= 0);
  }
  require(rule.kind == CompactKind::CodeFromSp || rule.kind == CompactKind::CodeFromFp);
  require(rule.return_address_words <= -1);
  // The return address is on the stack, which is above the stack pointer.
  const int slot_words = rule.cfa_words + rule.return_address_words;
  require(slot_words >= (rule.kind == CompactKind::CodeFromSp ? 0 : 1));
}

void check_rule(const CodeSource& code, LinkAddress pc) {
  uint32_t work = 0;
  const CodeStretch stretch = stretch_from_code(code, pc, work, kMaxInstructionsOfFile, {});
  const CompactRule rule = stretch.rule;
  require(work > 0 && work <= kMaxWork);
  require(stretch.begin == pc && stretch.begin <= stretch.end);
  uint32_t work_again = 0;
  require(rule_from_code(code, pc, work_again, kMaxInstructionsOfFile) == rule &&
          work_again == work);
  check_is_one_of_code(rule);
}

void check_rule_of_memory(const CodeSource& code, LinkAddress pc) {
  uint32_t work = 0;
  const CompactRule rule = rule_from_memory_code(code, {pc.value}, work);
  require(work > 0 && work <= kMaxWork);
  check_is_one_of_code(rule);
  uint32_t work_past_jumps = 0;
  check_is_one_of_code(rule_past_jumps(code, {pc.value}, work_past_jumps));
  require(work_past_jumps > 0 && work_past_jumps <= kMaxWork);
}

void check_rule_of_function(const CodeSource& code, LinkAddress begin, LinkAddress pc) {
  uint32_t work = 0;
  const CompactRule rule = rule_from_function(code, begin, pc, work);
  require(work <= kMaxWork);
  if (rule.kind == CompactKind::NoCfi) return require(rule == CompactRule{});
  require(rule.kind == CompactKind::CodeFromSp);
  require(rule.cfa_words >= 1 && rule.return_address_words == -1);
  require(rule.fp != CompactFp::Saved || rule.fp_words < -1);
}

void check_prologue(const CodeSource& code, LinkAddress begin, LinkAddress pc, bool pc_is_exact) {
  uint32_t work = 0;
  const Prologue prologue = find_prologue(code, begin, pc, pc_is_exact, work);
  require(work <= kMaxWork);
  const bool has_rule =
      prologue.kind == Prologue::Kind::Edge || prologue.kind == Prologue::Kind::Frame;
  const CompactRule& rule = prologue.rule;
  if (!has_rule) return require(rule == CompactRule{} && !prologue.keeps_frame_pointer);
  require(rule.kind == CompactKind::CodeFromSp);
  require(rule.return_address_words <= -1 && rule.cfa_words + rule.return_address_words >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader input(std::as_bytes(std::span(data, size)));
  // Near the ends of the address space, too, where a sum of addresses begins anew.
  const LinkAddress begin{input.u8() % 4 == 0 ? input.u64() : 0x1000};
  const uint64_t stride = 1 + input.u8() % 8;
  const Bytes bytes = input.bytes(input.remaining());
  const FuzzedCode code(begin, bytes);
  for (size_t i = 0, at = 0; i < kMaxStarts && at <= bytes.size(); ++i, at += stride) {
    const Bytes rest = bytes.subspan(at);
    check_decoding(rest.first(std::min(rest.size(), 2 * kLongestX86Instruction_bytes)));
    check_rule(code, {begin.value + at});
    check_rule_of_memory(code, {begin.value + at});
    check_rule_of_function(code, begin, {begin.value + at});
  }
  // Functions' beginnings lie before it, or ahead.
  for (size_t i = 0; i <= kMaxStarts; ++i) {
    const LinkAddress pc{begin.value + bytes.size() * i / kMaxStarts};
    check_prologue(code, begin, pc, true);
    check_prologue(code, {}, pc, false);
  }
  return 0;
}
