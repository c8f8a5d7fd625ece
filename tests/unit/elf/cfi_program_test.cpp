#include "cfi_builder.h"
#include "support/catch2.h"

using namespace sentry_prof;
using namespace sentry_prof::elf_test;
using unwind::CfaKind;
using unwind::RowStatus;
using unwind::RuleKind;

namespace {

std::vector<int> values(Bytes bytes) {
  std::vector<int> result;
  for (const std::byte byte : bytes) result.push_back(std::to_integer<int>(byte));
  return result;
}

// Program bytes put together.
Program operator+(Program a, const Program& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Program times(size_t count, const Program& part) {
  Program result;
  result.reserve(count * part.size());
  for (size_t i = 0; i < count; ++i) result.insert(result.end(), part.begin(), part.end());
  return result;
}

void check_rule(const unwind::Row& row, unsigned reg, RuleKind kind, int64_t offset = 0) {
  CAPTURE(reg);
  CHECK(row.rules[reg].kind == kind);
  CHECK(row.rules[reg].offset == offset);
}

}  // namespace

TEST_CASE("an FDE without instructions has the row of its CIE") {
  const RowOf result({});
  REQUIRE(result.status == RowStatus::Found);
  CHECK(result.row.begin.value == 0x1000);
  CHECK(result.row.end.value == 0x1100);
  CHECK(result.row.cfa_kind == CfaKind::RegisterOffset);
  CHECK(result.row.cfa_register == 7);
  CHECK(result.row.cfa_offset == 8);
  CHECK(result.row.return_address_register == 16);
  CHECK_FALSE(result.row.is_signal_frame);
  check_rule(result.row, 16, RuleKind::AtCfaOffset, -8);
  check_rule(result.row, 3, RuleKind::Unspecified);
}

TEST_CASE("rows end where the location advances, in every size of advance") {
  // nop; advance 1, 2 (u8), 3 (u16), 4 (u32), 5 (u64); each followed by a CFA offset.
  const Program program = {0x00, 0x41, 0x0e, 16, 0x02, 2, 0x0e, 24,   0x03, 3,    0,
                           0x0e, 32,   0x04, 4,  0,    0, 0,    0x0e, 40,   0x1d, 5,
                           0,    0,    0,    0,  0,    0, 0,    0x0e, 48};
  struct Expected {
    uint64_t begin, end;
    int64_t offset;
  };
  const Expected expected[] = {{0x1000, 0x1001, 8},  {0x1001, 0x1003, 16}, {0x1003, 0x1006, 24},
                               {0x1006, 0x100a, 32}, {0x100a, 0x100f, 40}, {0x100f, 0x1100, 48}};
  for (const Expected& e : expected) {
    for (const uint64_t pc : {e.begin, e.end - 1}) {
      const RowOf result(program, pc);
      REQUIRE(result.status == RowStatus::Found);
      CHECK(result.row.begin.value == e.begin);
      CHECK(result.row.end.value == e.end);
      CHECK(result.row.cfa_offset == e.offset);
    }
  }
}

TEST_CASE("advances are multiplied with the code alignment") {
  const RowOf result({0x42, 0x0e, 16}, 0x1008, {.code_alignment = {4}});
  REQUIRE(result.status == RowStatus::Found);
  CHECK(result.row.begin.value == 0x1008);
  CHECK(result.row.cfa_offset == 16);
}

TEST_CASE("a row does not reach past its FDE") {
  const RowOf result({0x03, 0xff, 0x0f, 0x0e, 16}, 0x10ff);
  REQUIRE(result.status == RowStatus::Found);
  CHECK(result.row.end.value == 0x1100);
  CHECK(result.row.cfa_offset == 8);
}

TEST_CASE("set_loc moves to an address, but not backwards") {
  const RowOf forwards({0x01, 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 16}, 0x1020);
  REQUIRE(forwards.status == RowStatus::Found);
  CHECK(forwards.row.begin.value == 0x1020);
  CHECK(forwards.row.cfa_offset == 16);
  CHECK(RowOf({0x44, 0x01, 0x02, 0x10, 0, 0, 0, 0, 0, 0}, 0x1050).status == RowStatus::Malformed);
}

TEST_CASE("the CFA is defined by register and offset, plain and factored") {
  const RowOf plain({0x0c, 6, 0x80, 0x01});
  CHECK(plain.row.cfa_register == 6);
  CHECK(plain.row.cfa_offset == 128);
  const RowOf factored({0x12, 6, 0x7e});  // -2 * -8
  CHECK(factored.row.cfa_register == 6);
  CHECK(factored.row.cfa_offset == 16);
  const RowOf only_register({0x0d, 6});
  CHECK(only_register.row.cfa_register == 6);
  CHECK(only_register.row.cfa_offset == 8);
  const RowOf only_offset({0x13, 0x7d});  // -3 * -8
  CHECK(only_offset.row.cfa_register == 7);
  CHECK(only_offset.row.cfa_offset == 24);
}

TEST_CASE("the CFA may be an expression") {
  const RowOf result({0x0f, 2, 0x77, 0x10});
  REQUIRE(result.status == RowStatus::Found);
  CHECK(result.row.cfa_kind == CfaKind::Expression);
  CHECK(values(result.row.cfa_expression) == std::vector<int>{0x77, 0x10});
}

TEST_CASE("behind an expression, what is not told of the CFA is as it was before") {
  const bool is_register_told = GENERATE(true, false);
  const RowOf result = is_register_told
                           ? RowOf({0x0e, 16, 0x0f, 2, 0x77, 0x10, 0x0d, 6})   // libgcrypt
                           : RowOf({0x0d, 6, 0x0f, 2, 0x77, 0x10, 0x0e, 16});  // gcc 14
  REQUIRE(result.status == RowStatus::Found);
  CHECK(result.row.cfa_kind == CfaKind::RegisterOffset);
  CHECK(result.row.cfa_register == 6);
  CHECK(result.row.cfa_offset == 16);
  CHECK(result.row.cfa_expression.empty());
}

TEST_CASE("a change of a CFA that was not defined, or never by a register, is malformed") {
  CHECK(RowOf({0x0f, 1, 0x77, 0x0e, 16}, 0x1000, {.program = {}}).status == RowStatus::Malformed);
  CHECK(RowOf({}, 0x1000, {.program = {0x0f, 1, 0x77, 0x0e, 16}}).status == RowStatus::Malformed);
  CHECK(RowOf({0x0d, 6}, 0x1000, {.program = {}}).status == RowStatus::Malformed);
  CHECK(RowOf({0x0e, 6}, 0x1000, {.program = {}}).status == RowStatus::Malformed);
}

TEST_CASE("a row without a CFA says so") {
  const RowOf result({}, 0x1000, {.program = {0x07, 16}});
  REQUIRE(result.status == RowStatus::Found);
  CHECK(result.row.cfa_kind == CfaKind::Unset);
  check_rule(result.row, 16, RuleKind::Undefined);
}

TEST_CASE("each register rule has its instructions") {
  const RowOf result({0x83, 2,         // rbx at cfa-16
                      0x05, 6,  3,     // rbp at cfa-24
                      0x11, 12, 0x7c,  // r12 at cfa+32
                      0x2f, 13, 5,     // r13 at cfa+40
                      0x14, 14, 1,     // r14 is cfa-8
                      0x15, 15, 0x7f,  // r15 is cfa+8
                      0x07, 0,         // rax undefined
                      0x08, 1,         // rdx the same
                      0x09, 2,  33});  // rcx in 33
  REQUIRE(result.status == RowStatus::Found);
  check_rule(result.row, 3, RuleKind::AtCfaOffset, -16);
  check_rule(result.row, 6, RuleKind::AtCfaOffset, -24);
  check_rule(result.row, 12, RuleKind::AtCfaOffset, 32);
  check_rule(result.row, 13, RuleKind::AtCfaOffset, 40);
  check_rule(result.row, 14, RuleKind::ValCfaOffset, -8);
  check_rule(result.row, 15, RuleKind::ValCfaOffset, 8);
  check_rule(result.row, 0, RuleKind::Undefined);
  check_rule(result.row, 1, RuleKind::SameValue);
  check_rule(result.row, 2, RuleKind::Register);
  CHECK(result.row.rules[2].source_register == 33);
}

TEST_CASE("register rules may be expressions") {
  const RowOf result({0x10, 3, 2, 0x77, 8, 0x16, 6, 1, 0x30});
  REQUIRE(result.status == RowStatus::Found);
  check_rule(result.row, 3, RuleKind::AtExpression);
  CHECK(values(result.row.rules[3].expression) == std::vector<int>{0x77, 8});
  check_rule(result.row, 6, RuleKind::ValExpression);
  CHECK(values(result.row.rules[6].expression) == std::vector<int>{0x30});
}

TEST_CASE("restore goes back to the CIE's rule") {
  const Program cie_with_rbx = kUsualStart + Program{0x83, 2};
  const RowOf result({0x83, 7, 0x86, 3, 0xc3, 0x06, 6}, 0x1000, {.program = cie_with_rbx});
  REQUIRE(result.status == RowStatus::Found);
  check_rule(result.row, 3, RuleKind::AtCfaOffset, -16);
  check_rule(result.row, 6, RuleKind::Unspecified);
}

TEST_CASE("restore_state brings back the rules and the CFA, not the location") {
  const Program program = {0x83, 2, 0x0a, 0x0e, 64, 0x83, 5, 0x44, 0x0b, 0x44, 0x0e, 80};
  const RowOf before(program, 0x1000);
  CHECK(before.row.cfa_offset == 64);
  const RowOf result(program, 0x1004);
  REQUIRE(result.status == RowStatus::Found);
  CHECK(result.row.begin.value == 0x1004);
  CHECK(result.row.end.value == 0x1008);
  CHECK(result.row.cfa_offset == 8);
  check_rule(result.row, 3, RuleKind::AtCfaOffset, -16);
}

TEST_CASE("GNU_args_size is read over") {
  const RowOf result({0x2e, 0x80, 0x01, 0x0e, 16});
  REQUIRE(result.status == RowStatus::Found);
  CHECK(result.row.cfa_offset == 16);
}

TEST_CASE("negate_ra_state flips aarch64's RA_SIGN_STATE between 0 and 1") {
  const RowOf once({0x2d});
  REQUIRE(once.status == RowStatus::Found);
  check_rule(once.row, 34, RuleKind::ValExpression);
  CHECK(values(once.row.rules[34].expression) == std::vector<int>{0x31});  // DW_OP_lit1
  check_rule(RowOf({0x2d, 0x2d}).row, 34, RuleKind::Unspecified);
  check_rule(RowOf({0x0a, 0x2d, 0x0b}).row, 34, RuleKind::Unspecified);
  check_rule(RowOf({0x2c}).row, 34, RuleKind::ValExpression);  // negate_ra_state_with_pc
}

TEST_CASE("set_ra_state says how aarch64's return address is signed") {
  for (const uint8_t state : std::vector<uint8_t>{1, 2}) {
    const RowOf result({0x2b, state, 0x7e, 0x0e, 16, 0x9e, 2});
    REQUIRE(result.status == RowStatus::Found);
    check_rule(result.row, 34, RuleKind::ValExpression);
    CHECK(result.row.cfa_offset == 16);
    check_rule(result.row, 30, RuleKind::AtCfaOffset, -16);
  }
  check_rule(RowOf({0x2d, 0x2b, 0, 0}).row, 34, RuleKind::Unspecified);
}

TEST_CASE("unknown instructions are unsupported, but only up to the address asked for") {
  for (const int opcode : {0x17, 0x18, 0x1c, 0x1e, 0x20, 0x2a, 0x30, 0x3f}) {
    CAPTURE(opcode);
    const Program program = {0x44, static_cast<uint8_t>(opcode), 0, 0};
    CHECK(RowOf(program, 0x1003).status == RowStatus::Found);
    CHECK(RowOf(program, 0x1004).status == RowStatus::Unsupported);
  }
}

TEST_CASE("an operand that is cut off by the end of the program is malformed") {
  const Program cut_off[] = {{0x02},    {0x03, 1},    {0x04, 1, 0, 0}, {0x1d, 1}, {0x01, 1, 2},
                             {0x05},    {0x05, 3},    {0x83},          {0x06},    {0x07},
                             {0x08},    {0x09, 1},    {0x0c, 7},       {0x0d},    {0x0e},
                             {0x0f},    {0x0f, 1},    {0x10, 3, 4, 1}, {0x11, 3}, {0x12, 7},
                             {0x13},    {0x14, 3},    {0x15, 3},       {0x16, 3}, {0x2e},
                             {0x2b, 1}, {0x0e, 0x80}, {0x2f, 13}};
  for (const Program& program : cut_off) {
    CAPTURE(program);
    CHECK(RowOf(program, 0x10ff).status == RowStatus::Malformed);
  }
}

TEST_CASE("numbers that overflow are malformed") {
  const Program huge = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};  // 2^64 - 1
  CHECK(RowOf(Program{0x0e} + huge).status == RowStatus::Malformed);
  CHECK(RowOf(Program{0x83} + huge).status == RowStatus::Malformed);
  const Program most = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};  // 2^63 - 1
  CHECK(RowOf(Program{0x83} + most).status == RowStatus::Malformed);            // * -8
  CHECK(RowOf({0x1d, 0, 0, 0, 0, 0, 0, 0, 0x80}, 0x1000, {.code_alignment = {4}}).status ==
        RowStatus::Malformed);
  CHECK(RowOf({0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}).status ==
        RowStatus::Malformed);
}

TEST_CASE("registers that a row has no place for are read over up to 255") {
  const RowOf highest({0x05, 0xff, 1, 2, 0x07, 35, 0x06, 100, 0x08, 34});
  REQUIRE(highest.status == RowStatus::Found);
  check_rule(highest.row, 34, RuleKind::SameValue);
  const Program too_high[] = {{0x05, 0x80, 2, 2},
                              {0x06, 0x80, 2},
                              {0x07, 0x80, 2},
                              {0x08, 0x80, 2},
                              {0x09, 0x80, 2, 1},
                              {0x09, 1, 0x80, 2},
                              {0x0c, 0x80, 2, 8},
                              {0x0d, 0x80, 2},
                              {0x14, 0x80, 2, 1},
                              // same_value of 134,217,726: a gigabyte for who takes it.
                              {0x08, 0xfe, 0xff, 0xff, 0x3f}};
  for (const Program& program : too_high) {
    CAPTURE(program);
    CHECK(RowOf(program).status == RowStatus::Unsupported);
  }
}

TEST_CASE("a CFA or return address in a register that a row has no place for is unsupported") {
  CHECK(RowOf({0x0d, 34}).status == RowStatus::Found);
  CHECK(RowOf({0x0d, 35}).status == RowStatus::Unsupported);
  CHECK(RowOf({0x0d, 35, 0x0d, 7}).status == RowStatus::Found);
  CHECK(RowOf({}, 0x1000, {.return_column = {34}}).status == RowStatus::Found);
  CHECK(RowOf({}, 0x1000, {.return_column = {35}}).status == RowStatus::Unsupported);
}

TEST_CASE("states are remembered 16 deep, and none is restored that was not remembered") {
  CHECK(RowOf(times(16, {0x0a})).status == RowStatus::Found);
  CHECK(RowOf(times(17, {0x0a})).status == RowStatus::Unsupported);
  CHECK(RowOf(times(1000, {0x0a, 0x0b})).status == RowStatus::Found);
  CHECK(RowOf({0x0b}).status == RowStatus::Malformed);
  CHECK(RowOf({0x0b}, 0x1000, {.program = kUsualStart + Program{0x0a}}).status ==
        RowStatus::Malformed);
}

TEST_CASE("expressions have at most 1,024 bytes") {
  CHECK(RowOf(Program{0x0f, 0x80, 0x08} + Program(1024, 0x30)).status == RowStatus::Found);
  CHECK(RowOf(Program{0x0f, 0x81, 0x08} + Program(1025, 0x30)).status == RowStatus::Unsupported);
}

TEST_CASE("programs have at most 128 KiB") {
  const size_t limit = size_t{128} << 10;
  CHECK(RowOf(Program(limit, 0x00)).status == RowStatus::Found);
  CHECK(RowOf(Program(limit + 1, 0x00)).status == RowStatus::Unsupported);
  CHECK(RowOf({}, 0x1000, {.program = Program(limit + 1, 0x00)}).status == RowStatus::Unsupported);
}

TEST_CASE("a row tells what it cost: bytes run up to its end, and copies of states, found or not") {
  const auto cie_work = static_cast<uint32_t>(kUsualStart.size());
  CHECK(RowOf({}).row.work == cie_work);
  CHECK(RowOf(Program(1000, 0x00)).row.work == cie_work + 1000);
  CHECK(RowOf(Program{0x41} + Program(1000, 0x00)).row.work == cie_work + 1);
  CHECK(RowOf(Program{0x00, 0x3f}).row.work == cie_work + 2);
  CHECK(RowOf({0x0a, 0x0b}).row.work == cie_work + 2 + 2 * 8);
}

TEST_CASE("a CIE can neither restore rules nor move the location") {
  CHECK(RowOf({}, 0x1000, {.program = {0xc3}}).status == RowStatus::Malformed);
  CHECK(RowOf({}, 0x1000, {.program = {0x41}}).status == RowStatus::Malformed);
}

TEST_CASE("a row that is not found is left alone") {
  FrameBuilder builder;
  builder.cie();
  builder.fde(0x1000, 0x100, {0x0e, 99, 0x3f});
  unwind::Row row;
  row.cfa_offset = 1234;
  CHECK(builder.row_at(0x1000, row) == RowStatus::Unsupported);
  CHECK(row.cfa_offset == 1234);
  CHECK(builder.row_at(0x3000, row) == RowStatus::NoCfi);
  CHECK(row.cfa_offset == 1234);
}
