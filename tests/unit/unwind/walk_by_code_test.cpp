// Code without unwind information that can be read: how much it takes off the stack until it
// returns says where the return address is, which is believed where it lies behind a call. And the
// first code of a process.
#include "support/catch2.h"
#include "unwind/x86_instruction.h"
#include "walk_fixture.h"

#include <elf.h>

using namespace sentry_prof;
using namespace sentry_prof::test;

using Pcs = std::vector<uint64_t>;
using Origins = std::vector<FrameOrigin>;

namespace {

constexpr uint64_t kLeaf = 0x5010;  // no row covers it
constexpr uint64_t kCaller = 0x2050;
constexpr uint64_t kOuter = 0x3050;
constexpr uint64_t kRoot = 0x4050;

// kCaller keeps a frame pointer; the leaf's, which is still that, leads past it to kOuter.
struct FramelessLeaf : World {
  FramelessLeaf() {
    code.put(kLeaf, {0x90, 0xc3});  // nop; ret
    cfi.add(0x2000, 0x2100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
    cfi.add(0x3000, 0x3100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
    cfi.add(0x4000, 0x4100, root_row());
  }

  Pcs walk_at(uint64_t pc) {
    const uint64_t sp = 0x7008;
    const FakeStack stack(
        sp, {at(kCaller), 0, /*0x7018*/ 0x7030, at(kOuter), 0, /*0x7030*/ 0, at(kRoot)});
    const Walk walk = World::walk(registers_at(at(pc), sp, 0x7018), stack);
    CHECK(end_of(walk) == "root");
    found_origins = origins(walk);
    return pcs(walk);
  }

  Origins found_origins;
};

const Pcs kWhole{kLeaf, kCaller, kOuter, kRoot};
const Pcs kWithoutCaller{kLeaf, kOuter, kRoot};

}  // namespace

TEST_CASE("a leaf whose code can be read is walked by it") {
  FramelessLeaf w;
  w.code.put_call(kCaller, 0x5000);
  CHECK(w.walk_at(kLeaf) == kWhole);
  CHECK(w.found_origins ==
        Origins{FrameOrigin::Leaf, FrameOrigin::Code, FrameOrigin::Cfi, FrameOrigin::Cfi});
  CHECK(w.walk_at(kLeaf) == kWhole);  // by the cached rule
}

TEST_CASE("calls by pointer, and of other code that jumped here, are calls") {
  FramelessLeaf by_pointer;
  by_pointer.code.put(kCaller - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0});
  CHECK(by_pointer.walk_at(kLeaf) == kWhole);
  FramelessLeaf of_other;
  of_other.code.put_call(kCaller, 0x3000);
  CHECK(of_other.walk_at(kLeaf) == kWhole);
}

TEST_CASE("a word behind no call, or whose code is not at hand, is not believed") {
  FramelessLeaf w;
  CHECK(w.walk_at(kLeaf) == kWithoutCaller);
  FramelessLeaf other;
  other.code.put(kCaller - 7, {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90});
  CHECK(other.walk_at(kLeaf) == kWithoutCaller);
  CHECK(other.found_origins ==
        Origins{FrameOrigin::Leaf, FrameOrigin::FramePointer, FrameOrigin::Cfi});
}

TEST_CASE("bytes that read as a direct call to no code may be the end of another call") {
  FramelessLeaf w;
  w.code.put(kCaller - 7, {0x49, 0x89, 0xe8, 0x31, 0xc0, 0xff, 0xd3});  // ...; call *%rbx
  CHECK(w.walk_at(kLeaf) == kWhole);
}

TEST_CASE("bytes that read as a direct call to no code are no call") {
  FramelessLeaf w;
  w.code.put_call(kCaller, 0x800000);
  CHECK(w.walk_at(kLeaf) == kWithoutCaller);
}

TEST_CASE("a leaf that has a frame of its own goes by it") {
  FramelessLeaf w;
  w.code.put(kLeaf, {0xc9, 0xc3});   // leave; ret
  w.code.put_call(kCaller, 0x5000);  // a leftover
  w.code.put_call(kOuter, 0x5000);
  CHECK(w.walk_at(kLeaf) == kWithoutCaller);
  CHECK(w.found_origins == Origins{FrameOrigin::Leaf, FrameOrigin::Code, FrameOrigin::Cfi});
}

// Assembly that puts its stack pointer into %rbx, realigns the stack and calls what keeps %rbx.
struct RealignedStack : World {
  RealignedStack() {
    code.put(kLeaf, {0x48, 0x89, 0xdc, 0x48, 0x83, 0xc4, 0x08, 0xc3});  // mov %rbx,%rsp; add $8...
    code.put_call(kLeaf, 0x2000);
    code.put_call(kRoot, 0x5000);
    cfi.add(0x4000, 0x4100, root_row());
  }

  Registers registers(uint64_t pc, std::optional<uint64_t> rbx) const {
    Registers result = registers_at(at(pc), 0x7000, 1);
    if (rbx) result.set(kRbx, *rbx);
    return result;
  }

  const FakeStack stack{0x7000, {0x7020, at(kLeaf), 0, 0, /*0x7020*/ 0, at(kRoot), 0}};
};

TEST_CASE("a leaf that keeps its stack pointer in another register is left by it") {
  RealignedStack w;
  const Walk walk = w.walk(w.registers(kLeaf, 0x7020), w.stack);
  CHECK(pcs(walk) == Pcs{kLeaf, kRoot});
  CHECK(end_of(walk) == "root");
  CHECK(origins(walk) == Origins{FrameOrigin::Leaf, FrameOrigin::Code});
  CHECK(pcs(w.walk(w.registers(kLeaf, 0x7018), w.stack)) == Pcs{kLeaf});  // behind no call
  CHECK(pcs(w.walk(w.registers(kLeaf, std::nullopt), w.stack)) == Pcs{kLeaf});
}

TEST_CASE("a caller's kept register is the leaf's, if the leaf's row says that it is the same") {
  RealignedStack w;
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  const Walk walk = w.walk(w.registers(0x2010, 0x7020), w.stack);
  CHECK(pcs(walk) == Pcs{0x2010, kLeaf, kRoot});
  CHECK(end_of(walk) == "root");
}

TEST_CASE("where a kept register is not known the caller's frame pointer skips no frame") {
  RealignedStack w;
  w.code.put(0x2010, {0x58, 0xc3});  // pop %rax; ret: what else was saved is not known
  Registers registers = w.registers(0x2010, 0x7020);
  registers.set(kRbp, 0x7030);
  w.code.put_call(0x4060, 0x6000);
  const FakeStack stack(0x7000, {0, at(kLeaf), 0, 0, /*0x7020*/ 0, at(kRoot), 0, at(0x4060), 0});
  const Walk walk = w.walk(registers, stack);
  CHECK(pcs(walk) == Pcs{0x2010, kLeaf});
  CHECK(end_of(walk) == "no_unwind_info");
}

TEST_CASE("a walk over all registers leaves a caller by what the frames inside of it saved") {
  RealignedStack w;
  w.cfi.add(0x2000, 0x2100, saving(row_with_cfa(kRsp, 16), kRbx, -16));
  Registers registers = w.registers(0x2010, 5);
  registers.forget(kRbp);  // for want of which the first walk ends
  const Walk walk = w.walk(registers, w.stack);
  CHECK(pcs(walk) == Pcs{0x2010, kLeaf, kRoot});
  CHECK(end_of(walk) == "root");
  CHECK(w.unwinder.stats().restarts == 1);
}

TEST_CASE("a leaf's register that leads far beyond the copy is no stack pointer") {
  RealignedStack w;
  CHECK(end_of(w.walk(w.registers(kLeaf, 0x7100), w.stack)) == "stack_truncated");
  CHECK(end_of(w.walk(w.registers(kLeaf, 0x7100000), w.stack)) == "no_unwind_info");
}

TEST_CASE("callers without unwind information are read on from where they are returned to") {
  World w;
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x4000, 0x4100, root_row());
  w.code.put(0x5010, {0x5d, 0xc3});                    // pop %rbp; ret
  w.code.put(0x5020, {0x48, 0x83, 0xc4, 0x08, 0xc3});  // add $8,%rsp; ret
  w.code.put_call(0x5020, 0x5000);
  w.code.put_call(kRoot, 0x5018);
  const FakeStack stack(0x7000,
                        {0, at(0x5010), /*0x7010*/ 0x1234, at(0x5020), /*0x7020*/ 0, at(kRoot)});
  const Walk walk = w.walk(registers_at(at(0x2010), 0x7000, 0), stack);
  CHECK(pcs(walk) == Pcs{0x2010, 0x5010, 0x5020, kRoot});
  CHECK(origins(walk) ==
        Origins{FrameOrigin::Leaf, FrameOrigin::Cfi, FrameOrigin::Code, FrameOrigin::Code});
}

TEST_CASE("a leaf at its return is left by that, whatever its row says was popped") {
  World w;
  w.cfi.add(0x1000, 0x1100, row_with_cfa(kRsp, 0));  // OCaml's caml_raise_exn
  w.cfi.add(0x4000, 0x4100, root_row());
  w.code.put(0x1010, {0xc3});
  w.code.put(0x4050 - 7, {0x90, 0x90, 0xe8, 0, 0, 0, 0});
  const auto walk = [&](uint64_t pc) {
    return w.walk(registers_at(at(pc), 0x7000, 0), FakeStack(0x7000, {at(0x4050)}));
  };
  CHECK(pcs(walk(0x1010)) == Pcs{0x1010, 0x4050});
  CHECK(end_of(walk(0x1020)) == "no_progress");
}

TEST_CASE("a frame deeper than the copy is cut, not guessed") {
  World w;
  w.code.put(kLeaf, {0x48, 0x81, 0xc4, 0, 1, 0, 0, 0xc3});  // add $0x100,%rsp; ret
  const std::vector<uint64_t> words(16, 0);
  const StackSnapshot stack({0x7000}, std::as_bytes(std::span(words)), StackSnapshot::Behind::More);
  CHECK(end_of(w.unwinder.walk(registers_at(at(kLeaf), 0x7000, 0), stack, w.modules)) ==
        "stack_truncated");
}

namespace {

// kLeaf was called by the C library's start-up code at 0x6010, of which nothing can be read on.
struct StartUp : World {
  StartUp() { cfi.add(0x5000, 0x5100, row_with_cfa(kRsp, 16)); }

  Walk walk(uint64_t below_arguments, uint64_t between = 0) {
    const uint64_t strings = 0x7800;
    const FakeStack stack(
        0x7000, {0, at(0x6010), /*0x7010*/ between, below_arguments, /*0x7020*/ 1, strings, 0,
                 strings, 0, AT_PHDR, at(0x40), AT_PAGESZ, 4096, AT_NULL, 0});
    return World::walk(registers_at(at(kLeaf), 0x7000, 1), stack);
  }
};

}  // namespace

TEST_CASE("start-up code right below the process's arguments was called by the entry point") {
  StartUp w;
  w.code.put_call(0x8010, 0x6000);
  w.cfi.add(0x8000, 0x8100, RowStatus::Root);
  const Walk walk = w.walk(at(0x8010));
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{kLeaf, 0x6010, 0x8010});
  CHECK(origins(walk) == Origins{FrameOrigin::Leaf, FrameOrigin::Cfi, FrameOrigin::ProcessStart});
}

TEST_CASE("what start-up code called is not taken for it: a call stands between") {
  StartUp w;
  w.code.put_call(0x8010, 0x6000);
  w.cfi.add(0x8000, 0x8100, RowStatus::Root);
  w.code.put_call(0x6110, 0x7000);  // main's, of an applet that does not return
  const Walk walk = w.walk(at(0x8010), at(0x6110));
  CHECK(end_of(walk) == "no_unwind_info");
  CHECK(pcs(walk) == Pcs{kLeaf, 0x6010});
}

TEST_CASE("start-up code above which no call stands was called by nobody knows whom") {
  StartUp w;
  CHECK(end_of(w.walk(at(0x8010))) == "no_unwind_info");  // what stands there cannot be read
  w.code.put(0x8009, {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90});
  const Walk walk = w.walk(at(0x8010));
  CHECK(end_of(walk) == "no_unwind_info");
  CHECK(pcs(walk) == Pcs{kLeaf, 0x6010});
}

TEST_CASE("what begins where the process's stack does is the root") {
  World w;
  w.cfi.add(0x5000, 0x5100, row_with_cfa(kRsp, 16));
  const FakeStack stack(0x7000, {0, at(0x6010), /*0x7010*/ 1, 0x7800, 0, 0x7800, 0, AT_PHDR,
                                 at(0x40), AT_PAGESZ, 4096, AT_NULL, 0});
  CHECK(end_of(w.walk(registers_at(at(kLeaf), 0x7000, 1), stack)) == "root");
}

TEST_CASE("a frame pointer that leads to a call goes before the process's start") {
  StartUp w;
  w.code.put_call(0x8010, 0x6000);
  w.code.put_call(kCaller, 0x6000);
  w.cfi.add(0x8000, 0x8100, RowStatus::Root);
  w.cfi.add(0x2000, 0x2100, root_row());
  const FakeStack stack(
      0x7000, {0, at(0x6010), /*0x7010*/ 0, at(kCaller), 0, at(0x8010),
               /*0x7030*/ 1, 0x7800, 0, 0x7800, 0, AT_PHDR, at(0x40), AT_PAGESZ, 4096, AT_NULL, 0});
  CHECK(pcs(w.World::walk(registers_at(at(kLeaf), 0x7000, 0x7010), stack)) ==
        Pcs{kLeaf, 0x6010, kCaller});
}

TEST_CASE("code is read on from an exact pc and from behind a return address apart") {
  World w;
  w.cfi.add(0x2000, 0x2100, root_row());
  w.code.put(0x5010, {0x48, 0x83, 0xc4, 0x08, 0xc3});  // add $8,%rsp; ret
  w.code.put_call(kCaller, 0x5000);
  // A frame pointer that is none leads into the middle of that instruction.
  const FakeStack misled(0x7000, {0, at(0x5011), 0, 0, 0, 0});
  w.walk(registers_at(at(0x6010), 0x7000, 0x7000), misled);
  const FakeStack stack(0x7000, {0, at(kCaller), 0, 0});
  CHECK(pcs(w.walk(registers_at(at(0x5010), 0x7000, 0), stack)) == Pcs{0x5010, kCaller});
}

TEST_CASE("a word that was not believed is not remembered as seen") {
  World w;
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x4000, 0x4100, root_row());
  w.code.put(0x5010, {0xc3});
  w.code.put_call(kRoot, 0x5000);
  const auto walk = [&](uint64_t top, WalkMemory& memory) {
    const FakeStack stack(0x7000, {0, at(0x5010), /*0x7010*/ top, 0, /*0x7020*/ 0, at(kRoot)});
    return origins(
        w.unwinder.walk(registers_at(at(0x2010), 0x7000, 0x7020), stack, w.modules, &memory));
  };
  WalkMemory memory;
  CHECK(walk(0, memory) == Origins{FrameOrigin::Leaf, FrameOrigin::Cfi, FrameOrigin::FramePointer});
  CHECK(walk(at(kRoot), memory) == Origins{FrameOrigin::Leaf, FrameOrigin::Cfi, FrameOrigin::Code});
}

TEST_CASE("a function that realigned its stack is left by the variable that says where it was") {
  // mov -8(%rbp),%r10; leave; lea -8(%r10),%rsp; ret
  World w;
  w.code.put(kLeaf, {0x4c, 0x8b, 0x55, 0xf8, 0xc9, 0x49, 0x8d, 0x62, 0xf8, 0xc3});
  w.code.put_call(kCaller, 0x5000);
  w.cfi.add(0x2000, 0x2100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
  w.code.put_call(kRoot, 0x2000);
  w.cfi.add(0x4000, 0x4100, root_row());
  const FakeStack stack(0x7000, {/*variable*/ 0x7030, /*0x7008*/ 0x7040, /*a copy*/ at(kCaller), 0,
                                 0, at(kCaller), /*0x7030*/ 0, 0, /*0x7040*/ 0, at(kRoot)});
  const Walk whole = w.walk(registers_at(at(kLeaf), 0x7000, 0x7008), stack);
  CHECK(end_of(whole) == "root");
  CHECK(pcs(whole) == Pcs{kLeaf, kCaller, kRoot});
  CHECK(origins(whole) == Origins{FrameOrigin::Leaf, FrameOrigin::Code, FrameOrigin::Cfi});
  // Before the variable is written.
  CHECK(end_of(w.walk(registers_at(at(kLeaf), 0x7008, 0x7008), stack)) == "no_unwind_info");
}

TEST_CASE("a function that realigned its stack is left by %r10 before that is saved") {
  // push %r10; mov -8(%rbp),%r10; leave; lea -8(%r10),%rsp; ret
  World w;
  w.code.put(kLeaf, {0x41, 0x52, 0x4c, 0x8b, 0x55, 0xf8, 0xc9, 0x49, 0x8d, 0x62, 0xf8, 0xc3});
  w.code.put_call(kCaller, 0x5000);
  w.cfi.add(0x2000, 0x2100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
  w.code.put_call(kRoot, 0x2000);
  w.cfi.add(0x4000, 0x4100, root_row());
  const FakeStack stack(0x7000, {0, /*0x7008*/ 0x7040, /*a copy*/ at(kCaller), 0, 0, at(kCaller),
                                 /*0x7030*/ 0, 0, /*0x7040*/ 0, at(kRoot)});
  Registers registers = registers_at(at(kLeaf), 0x7008, 0x7008);
  registers.set(unwind::kX86R10, 0x7030);
  CHECK(pcs(w.walk(registers, stack)) == Pcs{kLeaf, kCaller, kRoot});
}

TEST_CASE("a register that calls overwrite leads only from where the thread was interrupted") {
  World w;
  w.code.put(kLeaf, {0x49, 0x8d, 0x62, 0xf8, 0xc3});  // lea -8(%r10),%rsp; ret
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x4000, 0x4100, root_row());
  w.code.put_call(kRoot, 0x5000);
  const FakeStack stack(0x7000, {0, at(kLeaf), 0, at(kRoot)});
  const auto walk = [&](uint64_t pc) {
    Registers registers = registers_at(pc, 0x7000, 0);
    registers.set(unwind::kX86R10, 0x7020);
    return w.walk(registers, stack);
  };
  CHECK(pcs(walk(at(kLeaf))) == Pcs{kLeaf, kRoot});
  CHECK(pcs(walk(at(0x2010))) == Pcs{0x2010, kLeaf});
}

TEST_CASE("assembly that has its stack pointer in a word of the stack is walked by that word") {
  // As libjpeg-turbo's: mov %rbp,%rsp; pop %rsp; pop %rbp; ret
  World w;
  w.code.put(kLeaf, {0x48, 0x89, 0xec, 0x5c, 0x5d, 0xc3});
  w.code.put_call(kCaller, 0x5000);
  w.cfi.add(0x2000, 0x2100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
  w.code.put_call(kRoot, 0x2000);
  w.cfi.add(0x4000, 0x4100, root_row());
  const auto walk = [&](uint64_t word, uint64_t fp = 0x7010) {
    const FakeStack stack(0x7000, {0, 0, /*0x7010*/ word, 0, 0, 0, /*0x7030*/ 0x7050, at(kCaller),
                                   0, 0, /*0x7050*/ 0, at(kRoot)});
    return w.walk(registers_at(at(kLeaf), 0x7000, fp), stack);
  };
  const Walk whole = walk(0x7030);
  CHECK(end_of(whole) == "root");
  CHECK(pcs(whole) == Pcs{kLeaf, kCaller, kRoot});
  CHECK(origins(whole) == Origins{FrameOrigin::Leaf, FrameOrigin::Code, FrameOrigin::Cfi});
  CHECK(end_of(walk(0x7028)) == "no_unwind_info");  // leads to no word behind a call
  CHECK(end_of(walk(0x6000)) == "no_unwind_info");  // below the stack pointer
  CHECK(end_of(walk(0x7030, 0xdead0000)) == "no_unwind_info");
}

TEST_CASE("a leaf whose row leads to no code is walked by its own code") {
  // As the functions within LuaJIT's interpreter: one row, of the interpreter's frame, for all.
  World w;
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x4000, 0x4100, root_row());
  w.code.put(0x2010, {0x90, 0xc3});  // nop; ret
  w.code.put_call(kCaller, 0x2010);
  w.code.put_call(kRoot, 0x2000);
  const auto registers = registers_at(at(0x2010), 0x7000, 0);
  const FakeStack stack(0x7000, {at(kCaller), /*0x7008*/ 5, at(kRoot), 0});
  const Walk walk = w.walk(registers, stack);
  CHECK(end_of(walk) == "root");
  CHECK(pcs(walk) == Pcs{0x2010, kCaller, kRoot});
  CHECK(origins(walk) == Origins{FrameOrigin::Leaf, FrameOrigin::Code, FrameOrigin::Cfi});
  CHECK(pcs(w.walk(registers, stack)) == pcs(walk));
  const FakeStack behind_no_call(0x7000, {at(0x4020), 5, at(kRoot), 0});
  CHECK(end_of(w.walk(registers, behind_no_call)) == "unmapped_pc");
  const FakeStack of_caller(0x7000, {5, /*0x7008*/ at(kCaller), /*0x7010*/ 0, 5});
  CHECK(end_of(w.walk(registers, of_caller)) == "unmapped_pc");  // no leaf any more
  // A word that is zero by chance is no root: the code leads on. Of a root it leads to the zero.
  const Walk by_chance = w.walk(registers, FakeStack(0x7000, {at(kCaller), 0, at(kRoot), 0}));
  CHECK(end_of(by_chance) == "root");
  CHECK(pcs(by_chance) == pcs(walk));
  w.cfi.add(0x2100, 0x2200, row_with_cfa(kRsp, 8));
  w.code.put(0x2110, {0x90, 0xc3});
  const Walk of_root = w.walk(registers_at(at(0x2110), 0x7000, 0), FakeStack(0x7000, {0, 5}));
  CHECK(end_of(of_root) == "root");
  CHECK(pcs(of_root) == Pcs{0x2110});
}

TEST_CASE("code is read once for a walk that needs all registers, too") {
  World w;
  w.code.put(0x5010, {0x48, 0x83, 0xc4, 0x08, 0xc3});  // add $8,%rsp; ret
  w.code.put_call(kCaller, 0x5000);
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRbx, 16));
  const FakeStack stack(0x7000, {0, at(kCaller), 0, 0});
  w.walk(registers_at(at(0x5010), 0x7000, 0), stack);
  const int reads = w.code.reads();
  CHECK(end_of(w.walk(registers_at(at(0x5010), 0x7000, 0), stack)) == "unknown_register");
  CHECK(w.code.reads() == reads);
}

TEST_CASE("a function to which a return leads that no call made is the root") {
  World w;
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRsp, 8));
  const FakeStack stack(0x7000, {0, at(0x3000), 0, 0, 0, 0});
  const auto registers = registers_at(at(0x2010), 0x7000, 0x7018);
  const auto walk = [&] { return w.walk(registers, stack); };
  CHECK(end_of(walk()) == "no_unwind_info");  // what stands before it is not known
  World known;
  known.cfi = w.cfi;
  known.code.put(0x2ff9, {0x66, 0x0f, 0x1f, 0x44, 0, 0, 0xf4});
  const Walk whole = known.walk(registers, stack);
  CHECK(end_of(whole) == "root");
  CHECK(pcs(whole) == Pcs{0x2010, 0x3000});
  CHECK(whole.frames.back().pc_is_exact);  // the byte before it is of another function
}

TEST_CASE("a root that no call made is at its first instruction when it is remembered, too") {
  World w;
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRsp, 8));
  w.code.put(0x2ff9, {0x66, 0x0f, 0x1f, 0x44, 0, 0, 0xf4});
  const FakeStack stack(0x7000, {0, at(0x2050), 0, at(0x3000), 0, 0});
  WalkMemory memory;
  for (const bool is_remembered : {false, true}) {
    const Walk walk =
        w.unwinder.walk(registers_at(at(0x2010), 0x7000, 1), stack, w.modules, &memory);
    CHECK(pcs(walk) == Pcs{0x2010, 0x2050, 0x3000});
    CHECK(walk.frames.back().pc_is_exact);
    CHECK((w.unwinder.stats().remembered_frames > 0) == is_remembered);
    w.unwinder.learn(memory, w.modules);
  }
}

TEST_CASE("code that never returns is the root where no call stands before it") {
  World w;
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  // push %rbp; jmp *%rbx; and where the function that was jumped to returns: call; hlt
  w.code.put(0x5ff0, {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x55, 0xff, 0xe3});
  w.code.put(0x5ffa, {0xe8, 0, 0, 0, 0, 0xf4});
  const auto walk = [&](uint64_t pc, uint64_t return_address) {
    const FakeStack stack(0x7000, {0, at(return_address), 0, 0, 0, 0});
    return w.walk(registers_at(at(pc), 0x7000, 1), stack);
  };
  const Walk whole = walk(0x2010, 0x5ffa);
  CHECK(end_of(whole) == "root");
  CHECK(pcs(whole) == Pcs{0x2010, 0x5ffa});
  CHECK(whole.frames.back().pc_is_exact);
  CHECK(end_of(walk(0x2010, 0x5fff)) == "no_unwind_info");  // behind the call: it was called
  CHECK(end_of(walk(0x5ffa, 0)) == "no_unwind_info");       // the leaf itself may have been
  const FakeStack stack(0x7000, {0, 0, /*0x7010*/ 5, at(0x5ffa), 0, 0});
  const Walk by_fp = w.walk(registers_at(at(0x5a00), 0x7000, 0x7010), stack);
  CHECK(end_of(by_fp) == "no_unwind_info");  // any pointer to code may stand there
  CHECK(pcs(by_fp) == Pcs{0x5a00, 0x5ffa});
}

TEST_CASE("a pointer to a function where a frame pointer leads is no root") {
  World w;
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRsp, 8));
  w.code.put(0x2ff9, {0x66, 0x0f, 0x1f, 0x44, 0, 0, 0xf4});  // nothing calls from there
  const FakeStack stack(0x7000, {0, 0, /*0x7010*/ 5, at(0x3000), 0, 0});
  const Walk walk = w.walk(registers_at(at(kLeaf), 0x7000, 0x7010), stack);
  CHECK(end_of(walk) == "no_unwind_info");
  CHECK(pcs(walk) == Pcs{kLeaf, 0x3000});
}

TEST_CASE(
    "what was a root by unwind tables alone is not remembered as one behind a frame pointer") {
  World w;
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRsp, 8));
  w.code.put(0x2ff9, {0x66, 0x0f, 0x1f, 0x44, 0, 0, 0xf4});  // nothing calls from there
  const FakeStack stack(0x7000, {/*fp*/ 5, at(kCaller), 0, at(0x3000), 0, 0});
  WalkMemory memory;
  const auto walk = [&](uint64_t pc, uint64_t fp) {
    return w.unwinder.walk(registers_at(at(pc), 0x7000, fp), stack, w.modules, &memory);
  };
  CHECK(end_of(walk(0x2010, 5)) == "root");
  CHECK(end_of(walk(kLeaf, 0x7000)) == "no_unwind_info");
}

TEST_CASE("behind a call that does not return, another function may begin") {
  World w;
  w.cfi.add(0x2000, 0x2100, row_with_cfa(kRsp, 16));
  w.cfi.add(0x3000, 0x3100, row_with_cfa(kRsp, 8));
  w.code.put_call(0x3000, 0x2000);
  const FakeStack stack(0x7000, {0, at(0x3000), 0, 0, 0, 0});
  CHECK(end_of(w.walk(registers_at(at(0x2010), 0x7000, 1), stack)) == "no_unwind_info");
}
