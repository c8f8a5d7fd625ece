#include "shadow_stack.h"

#include "instruction.h"
#include "support/catch2.h"

#include <initializer_list>
#include <map>
#include <vector>

namespace sentry_prof::judge {
namespace {

constexpr StackRegion kMain{0x10000, 0x20000};
constexpr StackRegion kOther{0x30000, 0x40000};
constexpr Instruction kCall{InstructionKind::Call, 5};
constexpr Instruction kReturn{InstructionKind::Return};
constexpr Instruction kAny{InstructionKind::Other};

// A thread that does as it is told.
class Thread {
 public:
  Thread() { shadow_.on_exec(sp_); }

  void call(uint64_t target) {
    memory_[sp_ - 8] = pc_ + kCall.length;
    go(kCall, target, sp_ - 8);
  }
  void ret() { go(kReturn, memory_[sp_], sp_ + 8); }
  void jump(uint64_t pc, uint64_t sp) { go(kAny, pc, sp); }
  void store(uint64_t address, uint64_t word) { memory_[address] = word; }
  void signal(uint64_t handler, uint64_t sp, StackRegion alternate = {}) {
    memory_[sp + 168] = pc_;
    shadow_.on_signal({.sp = sp,
                       .restorer = 0x777,
                       .interrupted_pc = pc_,
                       .saved_pc_at = sp + 168,
                       .interrupted_sp = sp_,
                       .alternate = alternate});
    memory_[sp] = 0x777;
    pc_ = handler;
    sp_ = sp;
  }
  void return_from_signal(uint64_t pc, uint64_t sp) {
    shadow_.on_step({{InstructionKind::Syscall}, pc_, sp_, pc, sp, true});
    pc_ = pc;
    sp_ = sp;
  }

  uint64_t sp() const { return sp_; }
  std::vector<uint64_t> callers() const {
    std::vector<uint64_t> pcs;
    for (const auto& caller : shadow_.callers()) pcs.push_back(caller.pc);
    return pcs;
  }
  ShadowStack& shadow() { return shadow_; }

 private:
  void go(Instruction instruction, uint64_t pc, uint64_t sp) {
    shadow_.on_step({instruction, pc_, sp_, pc, sp, false});
    pc_ = pc;
    sp_ = sp;
  }

  std::map<uint64_t, uint64_t> memory_;
  uint64_t pc_ = 0x100;
  uint64_t sp_ = 0x18000;
  ShadowStack shadow_{[this](uint64_t address) { return memory_[address]; },
                      [](uint64_t sp) { return kMain.holds(sp) ? kMain : kOther; }};
};

using Pcs = std::vector<uint64_t>;

Instruction decoded(std::initializer_list<unsigned> bytes) {
  std::vector<std::byte> code;
  for (const unsigned byte : bytes) code.push_back(static_cast<std::byte>(byte));
  return instruction_at(code);
}

}  // namespace

TEST_CASE("calls push and returns pop") {
  Thread thread;
  thread.call(0x200);
  thread.call(0x300);
  CHECK(thread.callers() == Pcs{0x105, 0x205});
  thread.ret();
  CHECK(thread.callers() == Pcs{0x105});
  CHECK(thread.shadow().last_move() == ShadowStack::Move::Return);
}

TEST_CASE("a tail call changes nothing") {
  Thread thread;
  thread.call(0x200);
  thread.jump(0x300, thread.sp());
  CHECK(thread.callers() == Pcs{0x105});
}

TEST_CASE("longjmp leaves all frames below its target") {
  Thread thread;
  const uint64_t sp = thread.sp();
  thread.call(0x200);
  thread.call(0x300);
  thread.call(0x400);
  thread.jump(0x110, sp);
  CHECK(thread.callers().empty());
  CHECK(thread.shadow().last_move() == ShadowStack::Move::Other);
}

TEST_CASE("a return address that waits in a register has its caller still") {
  Thread thread;
  thread.call(0x200);
  thread.jump(0x201, thread.sp() + 8);  // pop
  CHECK(thread.callers() == Pcs{0x105});
  thread.jump(0x202, thread.sp() - 8);  // push
  CHECK(thread.callers() == Pcs{0x105});
  thread.ret();
  CHECK(thread.callers().empty());
}

TEST_CASE("a return address that was changed and popped is none") {
  Thread thread;
  thread.call(0x200);
  thread.store(thread.sp(), 0x555);
  thread.jump(0x201, thread.sp() + 8);
  CHECK(thread.callers().empty());
}

TEST_CASE("a call of the next instruction is none") {
  Thread thread;
  thread.call(0x105);
  CHECK(thread.callers().empty());
}

TEST_CASE("a handler has the restorer and what it interrupted as callers") {
  Thread thread;
  const uint64_t sp = thread.sp();
  thread.call(0x200);
  thread.signal(0x900, sp - 0x500);
  CHECK(thread.callers() == Pcs{0x105, 0x200, 0x777});
  SECTION("until it returns") {
    thread.ret();
    CHECK(thread.callers() == Pcs{0x105, 0x200});
    thread.return_from_signal(0x200, sp - 8);
    CHECK(thread.callers() == Pcs{0x105});
  }
  SECTION("or until it leaves by longjmp") {
    thread.jump(0x110, sp);
    CHECK(thread.callers().empty());
  }
  SECTION("and may change where it goes on") {
    thread.store(sp - 0x500 + 168, 0x202);
    thread.shadow().reread_interrupted();
    CHECK(thread.callers() == Pcs{0x105, 0x202, 0x777});
  }
}

TEST_CASE("a handler on a stack of its own keeps its callers") {
  Thread thread;
  const uint64_t sp = thread.sp();
  thread.call(0x200);
  thread.signal(0x900, 0x38000, kOther);
  thread.call(0xa00);
  CHECK(thread.callers() == Pcs{0x105, 0x200, 0x777, 0x905});
  SECTION("and returns") {
    thread.ret();
    thread.ret();
    thread.return_from_signal(0x200, sp - 8);
    CHECK(thread.callers() == Pcs{0x105});
  }
  SECTION("or jumps back") {
    thread.jump(0x110, sp);
    CHECK(thread.callers().empty());
  }
}

TEST_CASE("a coroutine has callers of its own") {
  Thread thread;
  thread.call(0x200);
  const uint64_t sp = thread.sp();
  thread.store(0x38000, 0x600);  // where its first function returns to
  thread.jump(0x500, 0x38000);
  CHECK(thread.callers() == Pcs{0x600});
  thread.call(0x700);
  const uint64_t inside = thread.sp();
  thread.jump(0x210, sp);
  CHECK(thread.callers() == Pcs{0x105});
  thread.jump(0x701, inside);
  CHECK(thread.callers() == Pcs{0x600, 0x505});
}

TEST_CASE("a coroutine in the place of one that ended begins anew") {
  Thread thread;
  const uint64_t sp = thread.sp();
  thread.store(0x38000, 0x600);
  thread.jump(0x500, 0x38000);
  thread.call(0x700);
  const uint64_t inside = thread.sp();
  thread.jump(0x210, sp);
  thread.store(inside, 0);
  thread.store(0x38000, 0x660);
  thread.jump(0x500, 0x38000);
  CHECK(thread.callers() == Pcs{0x660});
}

TEST_CASE("calls are recognised with their length") {
  CHECK(decoded({0xe8, 1, 2, 3, 4}).length == 5);
  CHECK(decoded({0xff, 0xd0}).length == 2);                     // call *%rax
  CHECK(decoded({0x41, 0xff, 0xd4}).length == 3);               // call *%r12
  CHECK(decoded({0xff, 0x15, 1, 2, 3, 4}).length == 6);         // call *disp(%rip)
  CHECK(decoded({0xff, 0x54, 0x24, 0x08}).length == 4);         // call *8(%rsp)
  CHECK(decoded({0xff, 0x14, 0xc5, 1, 2, 3, 4}).length == 7);   // call *disp(,%rax,8)
  CHECK(decoded({0x3e, 0xff, 0xd0}).length == 3);               // notrack call *%rax
  CHECK(decoded({0xff, 0x93, 1, 2, 3, 4}).length == 6);         // call *disp32(%rbx)
  CHECK(decoded({0xff, 0xe0}).kind == InstructionKind::Other);  // jmp *%rax
  CHECK(decoded({0xf3, 0xc3}).kind == InstructionKind::Return);
  CHECK(decoded({0x0f, 0x05}).kind == InstructionKind::Syscall);
  CHECK(decoded({0xf3, 0x48, 0xab}).kind == InstructionKind::Repeat);
  CHECK(decoded({0xcc}).kind == InstructionKind::Breakpoint);
  CHECK(decoded({0x48}).kind == InstructionKind::Unknown);
}

}  // namespace sentry_prof::judge
