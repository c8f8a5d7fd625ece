// Stretches of code that share a rule: how far they reach, and what is read thanks to them.
#include "unwind/code_stretches.h"

#include "support/catch2.h"
#include "support/fake_cfi.h"
#include "unwind/rule_from_code.h"
#include "unwind/x86_instruction.h"

using namespace sentry_prof;
using namespace sentry_prof::test;
using namespace sentry_prof::unwind;

namespace {

constexpr uint64_t kCode = 0x1000;
constexpr CompactRule kThreeWords{
    .kind = CompactKind::CodeFromSp, .cfa_words = 3, .return_address_words = -1};
constexpr CompactRule kOneWord{
    .kind = CompactKind::CodeFromSp, .cfa_words = 1, .return_address_words = -1};

CodeStretch stretch(uint64_t begin, uint64_t end, CompactRule rule = kThreeWords) {
  return {{begin}, {end}, rule};
}

void check_stretch(const CodeStretch& found, const CodeStretch& wanted) {
  CHECK(found.begin == wanted.begin);
  CHECK(found.end == wanted.end);
  CHECK(found.rule == wanted.rule);
}

struct CodeToRead {
  explicit CodeToRead(std::initializer_list<int> bytes) { code.put(kCode, bytes); }

  CodeStretch at(uint64_t offset, const CodeStretch& known = {}) {
    work = 0;
    return stretch_from_code(code, {kCode + offset}, work, kMaxInstructionsOfFile, known);
  }

  FakeCode code;
  uint32_t work = 0;
};

}  // namespace

TEST_CASE("a stretch reaches to the first change that a rule tells of") {
  CodeToRead f{0x90, 0x90, 0x5b, 0x5b, 0xc3};  // nop; nop; pop %rbx; pop %rbx; ret
  check_stretch(f.at(0), stretch(kCode, kCode + 2));
  check_stretch(f.at(1), stretch(kCode + 1, kCode + 2));
  CHECK(f.at(2).is_empty());
  CHECK(f.at(2).rule == kThreeWords);
}

TEST_CASE("a stretch reaches to the branch by which the return is found, and to no jump") {
  // nop; je 1f; nop; jmp *%rax; 1: ret
  CodeToRead branch{0x90, 0x74, 0x03, 0x90, 0xff, 0xe0, 0xc3};
  check_stretch(branch.at(0), stretch(kCode, kCode + 3, kOneWord));
  CodeToRead jump{0x90, 0xeb, 0x01, 0x90, 0xc3};  // nop; jmp 1f; nop; 1: ret
  check_stretch(jump.at(0), stretch(kCode, kCode + 1, kOneWord));
}

TEST_CASE("code without a return has no stretch") {
  CHECK(CodeToRead{0x90, 0xf4}.at(0).is_empty());
  CHECK(CodeToRead{0x90, 0x06}.at(0).is_empty());
}

TEST_CASE("reading on ends where a known stretch begins") {
  CodeToRead f{0x90, 0x90, 0x90, 0x90,
               0x06};  // the last is no instruction: only what is known helps
  const CodeStretch known = stretch(kCode + 2, kCode + 4);
  check_stretch(f.at(0, known), stretch(kCode, kCode + 4));
  check_stretch(f.at(2, known), known);
  check_stretch(f.at(3, known), known);
  CHECK(f.work == 0);
}

TEST_CASE("a known stretch says nothing of code that comes to it in another state") {
  const CodeStretch known = stretch(kCode + 2, kCode + 4);
  CHECK(CodeToRead{0x5b, 0x90, 0x90, 0x06}.at(0, known).rule == CompactRule{});  // pop %rbx
  // jmp 2f; 1: nop; 2: nop
  CHECK(CodeToRead{0xeb, 0x00, 0x90, 0x06}.at(0, known).rule == CompactRule{});
}

TEST_CASE("a known stretch that stands on a register says nothing of code that overwrites it") {
  CodeStretch known = stretch(kCode + 3, kCode + 4);
  known.rule.kind = CompactKind::CodeFromRegister;
  known.rule.return_address_words = 3;                                              // %rbx
  CHECK(CodeToRead{0x48, 0x89, 0xc3, 0x90, 0x06}.at(0, known).is_empty());          // mov %rax,%rbx
  const CodeStretch found = CodeToRead{0x49, 0x89, 0xc4, 0x90, 0x06}.at(0, known);  // mov %rax,%r12
  check_stretch(found, {{kCode}, known.end, known.rule});
}

TEST_CASE("CodeStretches knows those of each image, and the nearest") {
  CodeStretches stretches;
  CHECK(stretches.at_or_behind(0, {kCode}).is_empty());
  stretches.add(0, stretch(0x2000, 0x2100));
  stretches.add(0, stretch(0x3000, 0x3100));
  stretches.add(1, stretch(0x1800, 0x1900, kOneWord));
  check_stretch(stretches.at_or_behind(0, {0x1000}), stretch(0x2000, 0x2100));
  check_stretch(stretches.at_or_behind(0, {0x20ff}), stretch(0x2000, 0x2100));
  check_stretch(stretches.at_or_behind(0, {0x2100}), stretch(0x3000, 0x3100));
  CHECK(stretches.at_or_behind(0, {0x3100}).is_empty());
  check_stretch(stretches.at_or_behind(1, {0x1000}), stretch(0x1800, 0x1900, kOneWord));
  CHECK(stretches.at_or_behind(2, {0x1000}).is_empty());
}

TEST_CASE("CodeStretches lets a stretch grow, and the oldest of many fall out") {
  CodeStretches stretches;
  stretches.add(0, stretch(0x2000, 0x2100));
  stretches.add(0, stretch(0x1f00, 0x2100));  // read on from 0x1f00 to the known one
  check_stretch(stretches.at_or_behind(0, {0x1000}), stretch(0x1f00, 0x2100));
  stretches.add(0, stretch(0x1e00, 0x1f00, kOneWord));  // another rule
  check_stretch(stretches.at_or_behind(0, {0x1000}), stretch(0x1e00, 0x1f00, kOneWord));
  check_stretch(stretches.at_or_behind(0, {0x1f00}), stretch(0x1f00, 0x2100));
  stretches.add(0, stretch(0x500, 0x500));
  stretches.add(0, {{0x500}, {0x600}, {}});
  check_stretch(stretches.at_or_behind(0, {0x500}), stretch(0x1e00, 0x1f00, kOneWord));
  for (uint64_t i = 0; i < 14; ++i)
    stretches.add(0, stretch(0x9000 + 0x100 * i, 0x9080 + 0x100 * i));
  CHECK(stretches.at_or_behind(0, {0x1f00}).begin == LinkAddress{0x1f00});
  stretches.add(0, stretch(0x20000, 0x20010));
  CHECK(stretches.at_or_behind(0, {0x1f00}).begin == LinkAddress{0x9000});
}
