// What a walk may cost: unwind information made to be slow ends it.
#include "support/catch2.h"
#include "unwind/dwarf_expression.h"
#include "unwind/walk.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

constexpr size_t kFrames = 100;

// A leaf at 0x1000 and callers at 0x1010, 0x1020, ..., all of one function.
Walk walk_many(World& w) {
  std::vector<uint64_t> words;
  for (size_t i = 1; i < kFrames; ++i) words.push_back(at(0x1000 + i * 0x10));
  words.push_back(at(0x4050));
  return w.walk(registers_at(at(0x1000), 0x7000, 0), FakeStack(0x7000, std::move(words)));
}

Row expensive_row(uint32_t work) {
  Row row = row_with_cfa(kRsp, 8);
  row.work = work;
  return row;
}

}  // namespace

TEST_CASE("rules that take long to work out end a walk, but are kept: the next one comes farther") {
  World w;
  w.cfi.add(0x1000, 0x2000, expensive_row(kMaxWork / 32));
  w.cfi.add(0x4000, 0x4100, root_row());
  const Walk first = walk_many(w);
  CHECK(end_of(first) == "unsupported");
  CHECK(first.frames.size() == 32);
  CHECK(w.cfi.lookups() == 32);
  CHECK(walk_many(w).frames.size() == 64);
  CHECK(walk_many(w).frames.size() == 96);
  const Walk fourth = walk_many(w);
  CHECK(end_of(fourth) == "root");
  CHECK(fourth.frames.size() == kFrames + 1);
  CHECK(w.cfi.lookups() == kFrames + 1);
}

TEST_CASE("answers without a row cost as well") {
  class Slow final : public CfiSource {
   public:
    RowStatus row_at(LinkAddress, Row& row) const override {
      row.work += kMaxWork;
      return RowStatus::NoCfi;
    }
  };
  World w;
  const Slow slow;
  w.modules.insert({{kBias + 0x1000}, {kBias + 0x9000}, {kBias}, kProgram, &slow});
  const FakeStack stack(0x7000, {0, at(0x4050)});
  CHECK(end_of(w.walk(registers_at(at(0x1000), 0x7000, 0x7000), stack)) == "unsupported");
}

TEST_CASE("a provisional answer is asked for again by the next walk") {
  class Late final : public CfiSource {
   public:
    RowStatus row_at(LinkAddress, Row& row) const override {
      row.is_provisional = asked_++ == 0;
      if (row.is_provisional) return RowStatus::NoCfi;
      return RowStatus::Root;
    }

   private:
    mutable int asked_ = 0;
  };
  World w;
  const Late late;
  w.modules.insert({{kBias + 0x1000}, {kBias + 0x9000}, {kBias}, kProgram, &late});
  const FakeStack stack(0x7000, {0, 0});
  const auto registers = registers_at(at(0x1000), 0x7000, 0);
  CHECK(end_of(w.walk(registers, stack)) == "no_unwind_info");
  CHECK(end_of(w.walk(registers, stack)) == "root");
}

TEST_CASE("a row that no rule can hold is not worked out again if that takes long") {
  World w;
  Row row = expensive_row(kMaxWork / 8);
  const Expression cfa{0x77, 8};
  row.cfa_kind = CfaKind::Expression;
  row.cfa_expression = cfa;
  w.cfi.add(0x1000, 0x2000, row);
  for (int i = 0; i < 3; ++i) {
    const Walk walk = walk_many(w);
    CHECK(end_of(walk) == "unsupported");
    CHECK(walk.frames.size() == 1);
  }
  CHECK(w.cfi.lookups() == 1);
}

TEST_CASE("a row that no rule can hold is looked up once by the first walk") {
  World w;
  const Expression cfa{0x77, 8};
  Row row = row_with_cfa(kRsp, 8);
  row.cfa_kind = CfaKind::Expression;
  row.cfa_expression = cfa;
  w.cfi.add(0x1000, 0x2000, row);
  w.cfi.add(0x4000, 0x4100, root_row());
  CHECK(end_of(walk_many(w)) == "root");
  CHECK(w.cfi.lookups() == kFrames + 1);
}

TEST_CASE("steps of expressions count, also of those that give nothing") {
  const Expression spin{0x2f, 0xfd, 0xff};
  World w;
  Row row = row_with_cfa(kRsp, 8);
  for (const unsigned reg : {0u, 1u, 2u, 3u, 4u, 8u, 9u, 10u, 11u, 12u, 13u, 14u, 15u}) {
    row.rules[reg] = {.kind = RuleKind::ValExpression, .expression = spin};
  }
  const Expression cfa{0x77, 8};
  row.cfa_kind = CfaKind::Expression;
  row.cfa_expression = cfa;
  w.cfi.add(0x1000, 0x2000, row);
  const Walk walk = walk_many(w);
  CHECK(end_of(walk) == "unsupported");
  CHECK(walk.frames.size() == 1 + kMaxWork / (13 * kMaxExpressionSteps + 1));
}

TEST_CASE("a second walk, over all registers, has only what the first left, and never gives less") {
  World w;
  w.cfi.add(0x1000, 0x1010, expensive_row(kMaxWork * 3 / 4));
  w.cfi.add(0x1010, 0x1020, row_with_cfa(kRbx, 0));  // of which the first walk knows nothing
  const FakeStack stack(0x7000, {at(0x1018), at(0x1008)});
  Registers registers = registers_at(at(0x1000), 0x7000, 0);
  registers.set(kRbx, 0x7010);
  const Walk walk = w.walk(registers, stack);
  CHECK(end_of(walk) == "unknown_register");
  CHECK(walk.frames.size() == 2);
  CHECK(w.unwinder.stats().restarts == 1);
}
