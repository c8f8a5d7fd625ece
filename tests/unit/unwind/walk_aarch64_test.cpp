// What is different on aarch64: a call puts the return address into a register and pushes nothing,
// return addresses may be signed, and frame records lie anywhere in a frame.
#include "support/catch2.h"
#include "support/fake_cfi.h"
#include "unwind/walk.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;

namespace {

constexpr unsigned kX19 = 19, kFp = 29, kLr = 30, kSp = 31, kPc = 32;

// CFA = sp + offset, return address in the link register: a leaf without a frame has 0.
Row leaf_row(int64_t cfa_offset = 0) {
  Row row;
  row.cfa_kind = CfaKind::RegisterOffset;
  row.cfa_register = kSp;
  row.cfa_offset = cfa_offset;
  row.return_address_register = kLr;
  return row;
}

// `stp x29, x30, [sp, #-size]!`, as gcc has it: the record at the frame's lower end, CFA by sp.
Row record_row(int64_t size_bytes) {
  return saving(saving(leaf_row(size_bytes), kFp, -size_bytes), kLr, 8 - size_bytes);
}

Row root() {
  Row row = leaf_row();
  row.rules[kLr] = {.kind = RuleKind::Undefined};
  return row;
}

// Code with CFI at 0x1000 to 0x9000: a leaf at 0x1000, functions with records of 16 and 48 bytes at
// 0x2000 and 0x3000, the thread's first at 0x4000. A JIT's code at 0x20000, a library without CFI
// at 0x30000, and one at `top`, whose end gives the size of addresses.
struct ArmWorld {
  explicit ArmWorld(uint64_t top = 0x7fff'0000'0000) {
    cfi.add(0x1000, 0x1100, leaf_row());
    cfi.add(0x2000, 0x2100, record_row(16));
    cfi.add(0x3000, 0x3100, record_row(48));
    cfi.add(0x4000, 0x4100, root());
    modules.insert({{0x1000}, {0x9000}, {}, kProgram, &cfi});
    modules.insert({{0x20000}, {0x21000}, {}, kNoImage, nullptr});
    modules.insert({{0x30000}, {0x31000}, {}, kLibraryWithoutCfi, nullptr});
    modules.insert({{top}, {top + 0x1000}, {}, kNoImage, nullptr});
  }

  Walk walk(uint64_t pc, uint64_t lr, uint64_t fp, const FakeStack& stack) {
    Registers registers;
    registers.set(kPc, pc);
    registers.set(kLr, lr);
    registers.set(kFp, fp);
    registers.set(kSp, StackSnapshot(stack).begin().value);
    return unwinder.walk(registers, stack, modules);
  }

  FakeCfi cfi;
  ModuleMap modules;
  Unwinder unwinder{Arch::Aarch64};
};

}  // namespace

TEST_CASE("an aarch64 leaf without a frame returns by its link register, by a compact rule") {
  ArmWorld w;
  // The record of 16 bytes, then that of 48 at 0x7010: its return address is at 0x7018.
  const FakeStack frames(0x7000, {0x7010, 0x3050, 0, 0x4050, 0, 0, 0, 0});
  for (int i = 0; i < 2; ++i) {
    const Walk walk = w.walk(0x1010, 0x2050, 0, frames);
    CHECK(end_of(walk) == "root");
    CHECK(pcs(walk) == Pcs{0x1010, 0x2050, 0x3050, 0x4050});
    CHECK(walk.frames[1].origin == FrameOrigin::Cfi);
  }
  CHECK(w.cfi.lookups() == 4);
  CHECK(w.unwinder.stats().full_rows == 0);
}

TEST_CASE("an aarch64 leaf that made room on the stack leaves the link register alone") {
  ArmWorld w;
  w.cfi.add(0x1000, 0x1100, leaf_row(32));
  const FakeStack stack(0x7000, {1, 2, 3, 4, 0, 0x4050});
  CHECK(pcs(w.walk(0x1010, 0x2050, 0, stack)) == Pcs{0x1010, 0x2050, 0x4050});
}

TEST_CASE("a caller whose return address is said to be in the link register: UnknownRegister") {
  ArmWorld w;
  w.cfi.add(0x5000, 0x5100, leaf_row());
  const Walk walk = w.walk(0x1010, 0x5050, 0, FakeStack(0x7000, {0, 0x4050}));
  CHECK(end_of(walk) == "unknown_register");
  CHECK(pcs(walk) == Pcs{0x1010, 0x5050});
}

TEST_CASE("a frame in units of the vector length is left by its frame record, if it was set up") {
  // As gcc 12 has it: DW_OP_bregx(VG), and the record where the stack pointer is.
  static constexpr std::array<std::byte, 3> kVectorLength{std::byte{0x92}, std::byte{46},
                                                          std::byte{0}};
  static constexpr std::array<std::byte, 2> kAtSp{std::byte{0x8f}, std::byte{0}};
  static constexpr std::array<std::byte, 2> kBehindSp{std::byte{0x8f}, std::byte{8}};
  Row row = leaf_row();
  row.cfa_kind = CfaKind::Expression;
  row.cfa_expression = kVectorLength;
  row.rules[kFp] = {.kind = RuleKind::AtExpression, .expression = kAtSp};
  row.rules[kLr] = {.kind = RuleKind::AtExpression, .expression = kBehindSp};
  ArmWorld w;
  w.cfi.add(0x5000, 0x5100, row);
  const FakeStack stack(0x7000, {0x7010, 0x3050, /*0x7010*/ 0, 0x4050});
  const Walk walk = w.walk(0x1010, 0x5050, 0x7000, stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010, 0x5050, 0x3050, 0x4050});
  CHECK(origins(walk) == std::vector{FrameOrigin::Leaf, FrameOrigin::Cfi, FrameOrigin::FramePointer,
                                     FrameOrigin::FramePointer});
  // A leaf may not have it yet.
  CHECK(end_of(w.walk(0x5050, 0x3050, 0x7000, stack)) == "unknown_register");
  // Nor has a function that was built to keep none: then it is that of a caller farther out.
  const FakeStack of_others(0x7000, {0x7020, 0x3050, 0, 0, /*0x7020*/ 0, 0x4050});
  const Walk other = w.walk(0x1010, 0x5050, 0x7020, of_others);
  CHECK(end_of(other) == "unknown_register");
  CHECK(pcs(other) == Pcs{0x1010, 0x5050});
}

TEST_CASE("what it takes to find such frame records is part of a walk's work") {
  static constexpr std::array<std::byte, 3> kVectorLength{std::byte{0x92}, std::byte{46},
                                                          std::byte{0}};
  // The frame pointer, behind a loop of 240 rounds.
  static const Expression kSlowly{0x8d, 0, 0x08, 240, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff, 0x13};
  Row row = leaf_row();
  row.cfa_kind = CfaKind::Expression;
  row.cfa_expression = kVectorLength;
  row.rules[kFp] = {.kind = RuleKind::AtExpression, .expression = kSlowly};
  ArmWorld w;
  w.cfi.add(0x5000, 0x5100, row);
  std::vector<uint64_t> words;
  constexpr size_t kRecords = 2000;
  for (size_t i = 1; i <= kRecords; ++i) words.insert(words.end(), {0x7000 + 16 * i, 0x5050});
  const Walk walk = w.walk(0x1010, 0x5050, 0x7000, FakeStack(0x7000, words));
  CHECK(end_of(walk) == "unsupported");
  CHECK(walk.frames_walked() > 100);
  CHECK(walk.frames_walked() < kRecords);
}

TEST_CASE("a link register of zero ends the walk: nobody called") {
  ArmWorld w;
  const Walk walk = w.walk(0x1010, 0, 0, FakeStack(0x7000, {0, 0}));
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010});
}

TEST_CASE("signatures are taken off, in the link register, on the stack and of a zero") {
  ArmWorld w;
  // 48 bits of address: a signature has bits 54 to 48.
  const FakeStack stack(0x7000, {0x7010, 0x0055'0000'0000'3050, 0, 0x007f'0000'0000'0000, 0, 0});
  const Walk walk = w.walk(0x1010, 0x002a'0000'0000'2050, 0, stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010, 0x2050, 0x3050});
}

TEST_CASE("how many bits an address has is seen by the highest code that is mapped") {
  // 39 bits: Raspberry Pi's and Android's kernels. A signature has bits 54 to 39.
  ArmWorld narrow(0x7f'ff00'0000);
  const FakeStack signed_39(0x7000, {0, 0x0075'5580'0000'4050});
  CHECK(pcs(narrow.walk(0x1010, 0x2050, 0, signed_39)) == Pcs{0x1010, 0x2050, 0x4050});
  // 52 bits: bits 51 to 48 are the address's, 54 to 52 the signature's.
  constexpr uint64_t kHigh = 0x000f'ff00'0000'0000;
  ArmWorld wide(kHigh);
  wide.modules.insert({{kHigh}, {kHigh + 0x1000}, {kHigh - 0x4000}, kProgram, &wide.cfi});
  const FakeStack signed_52(0x7000, {0, 0x0050'0000'0000'0000 | (kHigh + 0x50)});
  const Walk walk = wide.walk(0x1010, 0x2050, 0, signed_52);
  CHECK(pcs(walk) == Pcs{0x1010, 0x2050, 0x4050});
  CHECK(end_of(walk) == "root");
}

TEST_CASE("x86-64 addresses are taken as they are") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 8));
  const FakeStack stack(0x7000, {0x0055'0000'0000'0000 | at(0x1050)});
  CHECK(end_of(w.walk(registers_at(at(0x1010), 0x7000, 0), stack)) == "unmapped_pc");
}

TEST_CASE("a leaf without CFI returns by its link register where that leads to other code") {
  ArmWorld w;
  const FakeStack stack(0x7000, {/*0x7000*/ 0x7010, 0x3050, 0, 0x4050, 0, 0, 0, 0});
  SECTION("to code with CFI of another module") {
    const Walk walk = w.walk(0x30010, 0x2050, 0x7000, stack);
    CHECK(end_of(walk) == "root");
    CHECK(pcs(walk) == Pcs{0x30010, 0x2050, 0x3050, 0x4050});
    CHECK(walk.frames[1].origin == FrameOrigin::LinkRegister);
  }
  SECTION("to code with CFI of the same module: a PLT entry") {
    CHECK(pcs(w.walk(0x6000, 0x2050, 0x7000, stack)) == Pcs{0x6000, 0x2050, 0x3050, 0x4050});
  }
  SECTION("signed") {
    CHECK(pcs(w.walk(0x30010, 0x0011'0000'0000'2050, 0x7000, stack)) ==
          Pcs{0x30010, 0x2050, 0x3050, 0x4050});
  }
  SECTION("to nothing that is mapped, it is none") {
    CHECK(pcs(w.walk(0x30010, 0x50'0000, 0x7000, stack)) == Pcs{0x30010, 0x3050, 0x4050});
  }
}

TEST_CASE("a link register that leads to the same code without CFI may be left over from a call") {
  ArmWorld w;
  // The function's own record is at 0x7000; it called something and the register says so.
  const FakeStack stack(0x7000, {0x7020, 0x3050, 0, 0, /*0x7020*/ 0, 0x4050, 0, 0, 0, 0});
  const Walk walk = w.walk(0x20010, 0x20050, 0x7000, stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x20010, 0x3050, 0x4050});
  CHECK(walk.frames[1].origin == FrameOrigin::FramePointer);
}

TEST_CASE("behind a frame pointer the stack pointer is not known: the caller's record is taken") {
  ArmWorld w;
  // A JIT's frame of 40 bytes has its record at the lower end, so its caller's sp is 0x7028, not
  // 0x7010; that caller's CFA is sp + 48, and its record is where x29 says.
  const FakeStack stack(0x7000, {/*0x7000*/ 0x7028, 0x3050, 0, 0, 0, /*0x7028*/ 0, 0x2050, 0, 0, 0,
                                 0, /*0x7058*/ 0, 0x4050});
  for (int i = 0; i < 2; ++i) {
    const Walk walk = w.walk(0x20010, 0, 0x7000, stack);
    CHECK(end_of(walk) == "root");
    CHECK(pcs(walk) == Pcs{0x20010, 0x3050, 0x2050, 0x4050});
    CHECK(origins(walk) == std::vector{FrameOrigin::Leaf, FrameOrigin::FramePointer,
                                       FrameOrigin::FramePointer, FrameOrigin::Cfi});
  }
}

TEST_CASE("behind a frame pointer a caller without a record is not guessed") {
  ArmWorld w;
  w.cfi.add(0x5000, 0x5100, saving(leaf_row(32), kLr, -8));
  const FakeStack stack(0x7000, {0x7028, 0x5050, 0, 0x4050, 0, 0x4050, 0x4050, 0x4050});
  const Walk walk = w.walk(0x20010, 0, 0x7000, stack);
  CHECK(end_of(walk) == "unknown_register");
  CHECK(pcs(walk) == Pcs{0x20010, 0x5050});
}

TEST_CASE("behind a frame pointer a row that goes by it needs no stack pointer, whole or compact") {
  ArmWorld w;
  Row by_fp = record_row(48);
  by_fp.cfa_register = kFp;
  w.cfi.add(0x5000, 0x5100, by_fp);
  const FakeStack stack(0x7000, {0x7020, 0x5050, 0, 0, /*0x7020*/ 0, 0x4050, 0, 0, 0, 0});
  CHECK(pcs(w.walk(0x20010, 0, 0x7000, stack)) == Pcs{0x20010, 0x5050, 0x4050});
  Row whole = by_fp;
  whole.rules[kSp] = {.kind = RuleKind::ValCfaOffset};
  w.cfi.add(0x6000, 0x6100, whole);
  const FakeStack other(0x7000, {0x7020, 0x6050, 0, 0, /*0x7020*/ 0, 0x4050, 0, 0, 0, 0});
  const Walk walk = w.walk(0x20010, 0, 0x7000, other);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x20010, 0x6050, 0x4050});
}

TEST_CASE("behind a frame pointer a caller with a large array is walked by its record, too") {
  ArmWorld w;
  constexpr int64_t kArray = 1 << 20;
  w.cfi.add(0x5000, 0x5100, saving(saving(leaf_row(kArray), kFp, -16), kLr, -8));
  const FakeStack stack(0x7000, {0x7020, 0x5050, 0, 0, /*0x7020*/ 0, 0x4050, 0, 0, 0, 0});
  const Walk walk = w.walk(0x20010, 0, 0x7000, stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x20010, 0x5050, 0x4050});
}

TEST_CASE("the walk with all registers takes the record behind a frame pointer as well") {
  ArmWorld w;
  // 0x5000 needs x19, which 0x6000 has saved: not known in the fast walk.
  Row needs_x19 = saving(leaf_row(), kLr, -8);
  needs_x19.cfa_register = kX19;
  w.cfi.add(0x5000, 0x5100, needs_x19);
  w.cfi.add(0x6000, 0x6100, saving(record_row(48), kX19, -32));
  // Frames: JIT at 0x7000, 0x3050 with its record at 0x7010, 0x6050 at 0x7040.
  const FakeStack stack(0x7000, {/*0x7000*/ 0x7010, 0x3050, /*0x7010*/ 0x7040, 0x6050, 0, 0, 0, 0,
                                 /*0x7040*/ 0, 0x5050, /*x19*/ 0x7088, 0, 0, 0, 0, 0,
                                 /*0x7080*/ 0x4050});
  const Walk walk = w.walk(0x20010, 0, 0x7000, stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x20010, 0x3050, 0x6050, 0x5050, 0x4050});
  CHECK(w.unwinder.stats().restarts == 1);
}

TEST_CASE("a signal frame gives the interrupted leaf its link register back") {
  ArmWorld w;
  Row signal = leaf_row();  // as elf/signal_return.h gives it: registers in a row from sp + 16
  signal.return_address_register = kPc;
  signal.is_signal_frame = true;
  for (unsigned reg = 0; reg <= kPc; ++reg) {
    signal.rules[reg] = {.kind = RuleKind::AtCfaOffset, .offset = 16 + 8 * int64_t{reg}};
  }
  w.cfi.add(0x5fff, 0x6008, signal);
  std::vector<uint64_t> words(2 + 33 + 8);
  words[2 + kLr] = 0x2050;
  words[2 + kSp] = 0x7000 + 8 * 36;
  words[2 + kPc] = 0x1000;  // the leaf's first instruction
  words[36 + 1] = 0x4050;
  const Walk walk = w.walk(0x1010, 0x6000, 0, FakeStack(0x7000, words));
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x1010, 0x6000, 0x1000, 0x2050, 0x4050});
  CHECK(walk.frames[2].pc_is_exact);
  CHECK(w.unwinder.stats().restarts == 0);
}

TEST_CASE("behind the restore of an epilogue the link register is the caller's, whatever the row") {
  // Before LLVM 15 the row that goes by x29 holds to the function's end.
  constexpr uint64_t kAtRet = 0x5040, kBeforeRestore = 0x503c;
  ArmWorld w;
  FakeCode code;
  code.put(kBeforeRestore, {0xfd, 0x7b, 0xc1, 0xa8});  // ldp x29, x30, [sp], #16
  code.put(kAtRet, {0xc0, 0x03, 0x5f, 0xd6});          // ret
  w.modules.insert({{0x1000}, {0x9000}, {}, kProgram, &w.cfi, &code});
  Row row = saving(saving(leaf_row(16), kFp, -16), kLr, -8);
  row.cfa_register = kFp;
  w.cfi.add(0x5000, 0x5100, row);
  const FakeStack restored(0x7010, {/*0x7010*/ 0x7020, 0x3050, /*0x7020*/ 0, 0x4050});
  for (int i = 0; i < 2; ++i) {
    const Walk walk = w.walk(kAtRet, 0x2050, 0x7010, restored);
    CHECK(pcs(walk) == Pcs{kAtRet, 0x2050, 0x3050, 0x4050});
    CHECK(end_of(walk) == "root");
  }
  const FakeStack before(0x7000, {0x7010, 0x2050, /*0x7010*/ 0x7020, 0x3050, /*0x7020*/ 0, 0x4050});
  CHECK(pcs(w.walk(kBeforeRestore, 0, 0x7000, before)) ==
        Pcs{kBeforeRestore, 0x2050, 0x3050, 0x4050});
  // A return address there is behind a call: the row holds.
  w.cfi.add(0x6000, 0x6100, leaf_row());
  CHECK(pcs(w.walk(0x6010, kAtRet, 0x7000, before)) == Pcs{0x6010, kAtRet, 0x2050, 0x3050, 0x4050});
}

TEST_CASE("a leaf without rows that keeps no link register was called from where that leads") {
  // As memcpy within musl, which another function there calls.
  constexpr uint64_t kLeaf = 0x5000, kInLeaf = 0x5010, kInCaller = 0x5110;
  ArmWorld w;
  FakeCode code;
  for (uint64_t pc = kLeaf; pc < 0x5200; pc += 4) code.put(pc, {0x1f, 0x20, 0x03, 0xd5});  // nop
  code.put(kInCaller - 4, {0xbd, 0xff, 0xff, 0x97});  // bl kLeaf
  w.modules.insert({{0x1000}, {0x9000}, {}, kProgram, &w.cfi, &code});
  const FakeStack stack(0x7000, {/*0x7000*/ 0x7010, 0x3050, 0, 0x4050, 0, 0, 0, 0});
  const Walk walk = w.walk(kInLeaf, kInCaller, 0x7000, stack);
  CHECK(pcs(walk) == Pcs{kInLeaf, kInCaller, 0x3050, 0x4050});
  CHECK(walk.frames[1].origin == FrameOrigin::LinkRegister);
  // Of a leaf that has called, what it called left the register.
  code.put(kLeaf, {0xfd, 0x7b, 0xbf, 0xa9});  // stp x29, x30, [sp, #-16]!
  CHECK(pcs(w.walk(kInLeaf, kInCaller, 0x7000, stack)) == Pcs{kInLeaf, 0x3050, 0x4050});
}

TEST_CASE("a frame pointer of 0 is the first function's, unless calls stand above it") {
  constexpr uint64_t kInWork = 0x5010, kInMain = 0x5110;  // no rows there, nor frame records
  ArmWorld w;
  FakeCode code;
  code.put(kInWork - 4, {0x3c, 0, 0, 0x94});  // bl
  code.put(kInMain - 4, {0, 2, 0x3f, 0xd6});  // blr x16
  w.modules.insert({{0x1000}, {0x9000}, {}, kProgram, &w.cfi, &code});
  CHECK(end_of(w.walk(0x1010, kInWork, 0, FakeStack(0x7000, {0, 0}))) == "root");
  CHECK(end_of(w.walk(0x1010, kInWork, 0, FakeStack(0x7000, {0, kInWork}))) == "no_unwind_info");
  const FakeStack by_pointer(0x7000, {0, kInMain});
  CHECK(pcs(w.walk(0x1010, kInWork, 0, by_pointer)) == Pcs{0x1010, kInWork, kInMain});
  // A frame record had the zero: what stands above is another stack's, such as a goroutine's.
  const FakeStack record(0x7000, {/*0x7000*/ 0, kInWork, 0, kInMain});
  CHECK(pcs(w.walk(0x20010, 0, 0x7000, record)) == Pcs{0x20010, kInWork});
  CHECK(end_of(w.walk(0x20010, 0, 0x7000, record)) == "root");
  // Where that one's frame begins is not known: its row, by the stack pointer, does not hold.
  code.put(0x2050 - 4, {0, 2, 0x3f, 0xd6});
  CHECK(end_of(w.walk(0x1010, kInWork, 0, FakeStack(0x7000, {0, 0x2050, 0, 0x4010}))) != "root");
}
