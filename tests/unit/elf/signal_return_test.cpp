#include "elf/signal_return.h"

#include "support/catch2.h"
#include "support/elf_builder.h"

#include <elf.h>

using namespace sentry_prof;
using namespace sentry_prof::elf;
using namespace sentry_prof::test;
using unwind::Row;
using unwind::RuleKind;

namespace {

constexpr uint32_t kNop = 0xd503201f, kMovX8 = 0xd2801168, kSvc = 0xd4000001;

// An image whose code begins at 0x1000: these instructions.
struct CodeImage {
  explicit CodeImage(const std::vector<uint32_t>& code, ElfKind kind = {.machine = EM_AARCH64},
                     uint32_t flags = PF_R | PF_X)
      : file(build(code, kind, flags)), layout(read_layout(file).value()) {}

  static std::vector<std::byte> build(const std::vector<uint32_t>& code, ElfKind kind,
                                      uint32_t flags) {
    ByteWriter text;
    for (const uint32_t instruction : code) text.u32(instruction);
    ElfBuilder elf(kind);
    elf.section({.name = ".text",
                 .flags = SHF_ALLOC | SHF_EXECINSTR,
                 .address = 0x1000,
                 .contents = text.bytes()});
    elf.segment({.type = PT_LOAD, .flags = flags, .of_section = ".text"});
    return elf.build();
  }

  bool has(uint64_t pc) const {
    Row row;
    return signal_return_row(file, layout, {pc}, row);
  }

  MemoryByteSource file;
  Layout layout;
};

}  // namespace

TEST_CASE("the call of rt_sigreturn is known, as return address and as leaf") {
  const CodeImage image({kNop, kMovX8, kSvc, kNop});
  CHECK_FALSE(image.has(0x1000));
  CHECK(image.has(0x1003));  // return address 0x1004, less one
  CHECK(image.has(0x1004));
  CHECK(image.has(0x1008));
  CHECK_FALSE(image.has(0x100b));
  CHECK_FALSE(image.has(0x100c));
  CHECK(is_signal_return(image.file, image.layout, {0x1003}));
  CHECK_FALSE(is_signal_return(image.file, image.layout, {0x1000}));
}

TEST_CASE("its row restores what the kernel saved above the stack pointer") {
  const CodeImage image({kNop, kMovX8, kSvc});
  Row row;
  row.work = 7;
  row.rules[34] = {.kind = RuleKind::SameValue};  // of a row that was there before
  REQUIRE(signal_return_row(image.file, image.layout, {0x1003}, row));
  CHECK(row.is_signal_frame);
  CHECK(row.begin == LinkAddress{0x1003});
  CHECK(row.end == LinkAddress{0x100c});
  CHECK(row.cfa_kind == unwind::CfaKind::RegisterOffset);
  CHECK(row.cfa_register == 31);
  CHECK(row.cfa_offset == 0);
  CHECK(row.return_address_register == 32);
  CHECK(row.work > 7);
  // offsetof(struct rt_sigframe, uc.uc_mcontext.regs[0], .regs[30], .sp, .pc)
  const std::pair<unsigned, int64_t> places[] = {{0, 312}, {30, 552}, {31, 560}, {32, 568}};
  for (const auto& [reg, offset] : places) {
    CHECK(row.rules[reg].kind == RuleKind::AtCfaOffset);
    CHECK(row.rules[reg].offset == offset);
  }
  CHECK(row.rules[33].kind == RuleKind::Unspecified);
  CHECK(row.rules[34].kind == RuleKind::Unspecified);
}

TEST_CASE("musl's return from a signal on x86-64 is known, with either move") {
  // nop; mov $15,%rax; syscall. mov $15,%eax; syscall; nop; nop
  const CodeImage long_move({0x90909090, 0x0fc0c748, 0x0f000000, 0x90909005},
                            {.machine = EM_X86_64});
  for (const uint64_t pc : {0x1003, 0x1004, 0x100b}) CHECK(long_move.has(pc));
  for (const uint64_t pc : {0x1002, 0x1005, 0x100d}) CHECK_FALSE(long_move.has(pc));
  const CodeImage short_move({0x90909090, 0x00000fb8, 0x90050f00}, {.machine = EM_X86_64});
  for (const uint64_t pc : {0x1003, 0x1004, 0x1009}) CHECK(short_move.has(pc));
  CHECK_FALSE(short_move.has(0x100b));

  Row row;
  REQUIRE(signal_return_row(long_move.file, long_move.layout, {0x1003}, row));
  CHECK(row.is_signal_frame);
  CHECK(row.end == LinkAddress{0x100d});
  CHECK(row.cfa_register == 7);
  CHECK(row.return_address_register == 16);
  // offsetof(struct rt_sigframe, uc.uc_mcontext.r8, .rdi, .rbp, .rsp, .rip) less pretcode
  const std::pair<unsigned, int64_t> places[] = {{8, 40}, {5, 104}, {6, 120}, {7, 160}, {16, 168}};
  for (const auto& [reg, offset] : places) {
    CHECK(row.rules[reg].kind == RuleKind::AtCfaOffset);
    CHECK(row.rules[reg].offset == offset);
  }
}

TEST_CASE("nothing else is taken for a return from a signal") {
  CHECK_FALSE(CodeImage({kNop, kMovX8, kNop}).has(0x1004));
  CHECK_FALSE(CodeImage({kNop, kNop, kSvc}).has(0x1004));
  CHECK_FALSE(CodeImage({kNop, kMovX8}).has(0x1004));  // ends between the two
  CHECK_FALSE(CodeImage({kNop, kMovX8, kSvc}, {.machine = EM_X86_64}).has(0x1004));
  CHECK_FALSE(CodeImage({kNop, kMovX8, kSvc}, {.machine = EM_AARCH64, .order = std::endian::big})
                  .has(0x1004));
  CHECK_FALSE(CodeImage({kNop, kMovX8, kSvc}, {.machine = EM_AARCH64}, PF_R).has(0x1004));
  const CodeImage image({kMovX8, kSvc});
  for (const uint64_t pc : {uint64_t{0}, uint64_t{0xffb}, uint64_t{0x2000}, UINT64_MAX}) {
    CHECK_FALSE(image.has(pc));
  }
}
