#include "unwind/dwarf_expression.h"

#include "support/catch2.h"
#include "support/fake_cfi.h"

#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::unwind;
using namespace sentry_prof::test;

namespace {

constexpr int kDrop = 0x13, kSkip = 0x2f, kBra = 0x28, kPlus = 0x22, kDeref = 0x06;
constexpr int lit(int value) { return 0x30 + value; }
constexpr int breg(int reg) { return 0x70 + reg; }

const FakeStack kStack(0x7000, {0x1122334455667788, 42});

ExpressionResult evaluate(const Expression& expression, std::optional<uint64_t> initial = {}) {
  return evaluate_expression(expression, registers_at(0x40100b, 0x7000, 0x7008), kStack, initial);
}

uint64_t value_of(const Expression& expression, std::optional<uint64_t> initial = {}) {
  const ExpressionResult result = evaluate(expression, initial);
  REQUIRE(result.status == ExpressionStatus::Ok);
  return result.value;
}

ExpressionStatus status_of(const Expression& expression) { return evaluate(expression).status; }

}  // namespace

TEST_CASE("expressions push constants of every size and sign") {
  CHECK(value_of({lit(31)}) == 31);
  CHECK(value_of({0x08, 0xff}) == 255);
  CHECK(value_of({0x09, 0xff}) == UINT64_MAX);
  CHECK(value_of({0x0a, 0x34, 0xf2}) == 0xf234);
  CHECK(value_of({0x0b, 0xfe, 0xff}) == UINT64_MAX - 1);
  CHECK(value_of({0x0c, 1, 2, 3, 0x84}) == 0x84030201);
  CHECK(value_of({0x0d, 0, 0, 0, 0x80}) == 0xffffffff80000000);
  CHECK(value_of({0x0e, 1, 2, 3, 4, 5, 6, 7, 8}) == 0x0807060504030201);
  CHECK(value_of({0x0f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}) == UINT64_MAX);
  CHECK(value_of({0x10, 0x80, 0x01}) == 128);
  CHECK(value_of({0x11, 0x80, 0x7f}) == static_cast<uint64_t>(-128));
}

TEST_CASE("expressions read registers and the snapshot") {
  CHECK(value_of({breg(7), 0x78}) == 0x7000 - 8);
  CHECK(value_of({0x92, 16, 1}) == 0x40100c);
  CHECK(value_of({breg(7), 0, kDeref}) == 0x1122334455667788);
  CHECK(value_of({breg(7), 0, 0x94, 1}) == 0x88);
  CHECK(value_of({breg(7), 0, 0x94, 2}) == 0x7788);
  CHECK(value_of({breg(7), 0, 0x94, 4}) == 0x55667788);
  CHECK(value_of({breg(7), 0, 0x94, 8}) == 0x1122334455667788);
}

TEST_CASE("expressions start on the CFA where one is given") {
  CHECK(value_of({0x23, 16}, 0x7000) == 0x7010);
  CHECK(value_of({}, 0x7000) == 0x7000);
}

TEST_CASE("expressions shuffle their stack") {
  CHECK(value_of({lit(3), 0x12, kPlus}) == 6);                                    // dup
  CHECK(value_of({lit(3), lit(4), kDrop}) == 3);                                  // drop
  CHECK(value_of({lit(3), lit(4), 0x14}) == 3);                                   // over
  CHECK(value_of({lit(3), lit(4), lit(5), 0x15, 2}) == 3);                        // pick
  CHECK(value_of({lit(9), lit(2), 0x16, 0x1c}) == static_cast<uint64_t>(2 - 9));  // swap, minus
  // rot: 1 2 3 (top) becomes 3 1 2 (top), as DWARF 5 appendix D.1.2 shows it.
  CHECK(value_of({lit(1), lit(2), lit(3), 0x17}) == 2);
  CHECK(value_of({lit(1), lit(2), lit(3), 0x17, kDrop}) == 1);
  CHECK(value_of({lit(1), lit(2), lit(3), 0x17, kDrop, kDrop}) == 3);
}

TEST_CASE("expressions compute") {
  CHECK(value_of({0x09, 0xfb, 0x19}) == 5);                                  // abs(-5)
  CHECK(value_of({lit(12), lit(10), 0x1a}) == 8);                            // and
  CHECK(value_of({0x09, 0xf9, lit(2), 0x1b}) == static_cast<uint64_t>(-3));  // -7 / 2, signed
  CHECK(value_of({lit(7), lit(9), 0x1c}) == static_cast<uint64_t>(-2));      // minus
  CHECK(value_of({lit(17), lit(5), 0x1d}) == 2);                             // mod
  CHECK(value_of({lit(6), lit(7), 0x1e}) == 42);                             // mul
  CHECK(value_of({lit(1), 0x1f}) == UINT64_MAX);                             // neg
  CHECK(value_of({lit(0), 0x20}) == UINT64_MAX);                             // not
  CHECK(value_of({lit(12), lit(3), 0x21}) == 15);                            // or
  CHECK(value_of({lit(12), lit(3), kPlus}) == 15);                           // plus
  CHECK(value_of({lit(12), 0x23, 0x80, 0x01}) == 140);                       // plus_uconst
  CHECK(value_of({lit(3), lit(4), 0x24}) == 48);                             // shl
  CHECK(value_of({0x09, 0xff, 0x08, 60, 0x25}) == 15);                       // shr
  CHECK(value_of({0x09, 0xf0, lit(2), 0x26}) == static_cast<uint64_t>(-4));  // shra
  CHECK(value_of({lit(12), lit(10), 0x27}) == 6);                            // xor
}

TEST_CASE("expressions shift everything out, and wrap the one division that overflows") {
  CHECK(value_of({lit(1), 0x08, 64, 0x24}) == 0);
  CHECK(value_of({0x09, 0xff, 0x08, 64, 0x25}) == 0);
  CHECK(value_of({0x09, 0xff, 0x08, 200, 0x26}) == UINT64_MAX);
  CHECK(value_of({lit(1), 0x08, 63, 0x24, 0x09, 0xff, 0x1b}) == uint64_t{1} << 63);
}

TEST_CASE("expressions compare signed numbers") {
  const auto compare = [](int operation) { return value_of({0x09, 0xff, lit(1), operation}); };
  CHECK(compare(0x29) == 0);  // -1 == 1
  CHECK(compare(0x2a) == 0);  // >=
  CHECK(compare(0x2b) == 0);  // >
  CHECK(compare(0x2c) == 1);  // <=
  CHECK(compare(0x2d) == 1);  // <
  CHECK(compare(0x2e) == 1);  // !=
}

TEST_CASE("expressions branch forward and backward") {
  CHECK(value_of({lit(5), kSkip, 1, 0, kDrop}) == 5);
  CHECK(value_of({lit(5), lit(1), kBra, 1, 0, kDrop}) == 5);
  CHECK(value_of({lit(4), lit(5), lit(0), kBra, 1, 0, kDrop}) == 4);
  // Counts 3 down to 0: lit3; loop: lit1 minus dup bra loop.
  CHECK(value_of({lit(3), lit(1), 0x1c, 0x12, kBra, 0xfa, 0xff}) == 0);
  CHECK(value_of({lit(5), 0x96}) == 5);  // nop
}

TEST_CASE("an expression that loops ends after its steps") {
  CHECK(status_of({lit(1), kSkip, 0xfd, 0xff}) == ExpressionStatus::Unsupported);
}

TEST_CASE("an expression may take exactly 1000 steps") {
  std::vector<std::byte> nops(999, std::byte{0x96});
  nops.push_back(std::byte{lit(7)});
  const auto run = [&] { return evaluate_expression(nops, {}, kStack, {}); };
  CHECK(run().status == ExpressionStatus::Ok);
  CHECK(run().value == 7);
  nops.insert(nops.begin(), std::byte{0x96});
  CHECK(run().status == ExpressionStatus::Unsupported);
}

TEST_CASE("an expression may hold exactly 64 entries") {
  std::vector<std::byte> pushes(64, std::byte{lit(7)});
  const auto run = [&] { return evaluate_expression(pushes, {}, kStack, {}).status; };
  CHECK(run() == ExpressionStatus::Ok);
  pushes.push_back(std::byte{lit(7)});
  CHECK(run() == ExpressionStatus::Unsupported);
}

TEST_CASE("expressions refuse unknown operations and those that CFI may not use") {
  CHECK(status_of({0x00}) == ExpressionStatus::Unsupported);
  CHECK(status_of({0x9c}) == ExpressionStatus::Unsupported);          // call_frame_cfa
  CHECK(status_of({lit(1), 0x97}) == ExpressionStatus::Unsupported);  // push_object_address
  CHECK(status_of({0x03, 0, 0, 0, 0, 0, 0, 0, 0}) == ExpressionStatus::Unsupported);  // addr
  CHECK(status_of({0xff}) == ExpressionStatus::Unsupported);
}

TEST_CASE("expressions that break the rules are malformed") {
  CHECK(status_of({}) == ExpressionStatus::Malformed);                        // no result
  CHECK(status_of({kPlus}) == ExpressionStatus::Malformed);                   // underflow
  CHECK(status_of({lit(1), 0x15, 1}) == ExpressionStatus::Malformed);         // pick too deep
  CHECK(status_of({lit(1), 0x0e, 1, 2}) == ExpressionStatus::Malformed);      // operand cut off
  CHECK(status_of({lit(1), kSkip, 1, 0}) == ExpressionStatus::Malformed);     // past the end
  CHECK(status_of({lit(1), kSkip, 0, 0x80}) == ExpressionStatus::Malformed);  // before the start
  CHECK(status_of({lit(1), lit(0), 0x1b}) == ExpressionStatus::Malformed);    // division by zero
  CHECK(status_of({lit(1), lit(0), 0x1d}) == ExpressionStatus::Malformed);
  CHECK(status_of({breg(7), 0, 0x94, 3}) == ExpressionStatus::Malformed);  // three bytes
}

TEST_CASE("an expression that needs what is not there says what") {
  CHECK(status_of({breg(3), 0}) == ExpressionStatus::UnknownRegister);
  CHECK(status_of({0x92, 0xff, 0x7f, 0}) == ExpressionStatus::UnknownRegister);
  const ExpressionResult result = evaluate({breg(7), 16, kDeref});
  CHECK(result.status == ExpressionStatus::BadMemory);
  CHECK(result.failed_address.value == 0x7010);
}
