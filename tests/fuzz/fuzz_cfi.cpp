// Reads rows out of made-up .eh_frame_hdr, .eh_frame and .debug_frame sections. Nothing may crash,
// read outside the sections or run on; and a row that is found keeps the promises of row.h.
#include "base/byte_reader.h"
#include "elf/cfi_table.h"
#include "fuzz/require.h"
#include "unwind/row.h"

#include <vector>

using namespace sentry_prof;
using fuzz::require;
using namespace sentry_prof::elf;

namespace {

constexpr LinkAddress kHeaderAddress{0x1000};
constexpr LinkAddress kEhFrameAddress{0x2000};
constexpr LinkAddress kUntouched{0xdead};
constexpr size_t kMaxAddresses = 64;

CfiSection section(LinkAddress address, Bytes bytes) {
  return {address, {bytes.begin(), bytes.end()}};
}

// Sizes are fractions of what is left, so that a mutation of one byte moves a border a little.
Bytes share(ByteReader& input) {
  const uint64_t fraction = input.u8();
  return input.bytes(input.remaining() * fraction / 256);
}

CfiSections make_sections(ByteReader& input) {
  CfiSections result;
  const uint8_t flags = input.u8();
  result.is_64_bit = (flags & 1) == 0;
  result.order = (flags & 2) == 0 ? std::endian::little : std::endian::big;
  result.entry = {(flags & 4) == 0 ? 0u : 0x5000u};
  result.text = {(flags & 8) == 0 ? 0u : 0x4000u};
  result.eh_frame_hdr = section(kHeaderAddress, share(input));
  result.eh_frame = section(kEhFrameAddress, share(input));
  result.debug_frame = section({0}, input.bytes(input.remaining()));
  return result;
}

void touch(Bytes expression) {
  require(expression.size() <= 1024);
  static volatile uint8_t sink;
  for (const std::byte byte : expression) sink = sink + std::to_integer<uint8_t>(byte);
}

void check(const unwind::Row& row, LinkAddress pc) {
  require(row.begin <= pc && pc < row.end);
  require(row.return_address_register < unwind::kRegisterCount);
  require(row.cfa_kind != unwind::CfaKind::RegisterOffset ||
          row.cfa_register < unwind::kRegisterCount);
  if (row.cfa_kind == unwind::CfaKind::Expression) touch(row.cfa_expression);
  for (const unwind::RegisterRule& rule : row.rules) {
    require(rule.kind <= unwind::RuleKind::ValExpression);
    touch(rule.expression);
  }
}

void look_up(const CfiTable& table, LinkAddress pc) {
  unwind::Row row;
  row.begin = kUntouched;
  row.end = kUntouched;
  const unwind::RowStatus status = table.row_at(pc, row);
  if (status == unwind::RowStatus::Found) {
    check(row, pc);
  } else {
    require(row.begin == kUntouched && row.end == kUntouched);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader input(std::as_bytes(std::span(data, size)));
  const LinkAddress pc{input.u32()};
  const CfiTable table(make_sections(input));
  look_up(table, pc);
  std::vector<LinkAddress> addresses;
  table.for_each_fde([&](LinkAddress begin, LinkAddress end) {
    if (addresses.size() >= kMaxAddresses || begin == end) return;
    addresses.push_back(begin);
    addresses.push_back({begin.value + (end.value - begin.value) / 2});
    addresses.push_back({end.value - 1});
  });
  for (const LinkAddress address : addresses) look_up(table, address);
  require(table.memory_bytes() < 8 * size + 4096);
  return 0;
}
