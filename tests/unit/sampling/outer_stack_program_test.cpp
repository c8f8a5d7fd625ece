// The program that copies the outer part of a stack, run here on a stack of pages. (That the kernel
// takes it the integration tests show.)
#include "sampling/outer_stack_program.h"

#include "sampling/outer_block.h"
#include "support/catch2.h"

#include <cstring>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <asm/ptrace.h>

using namespace sentry_prof::sampling;

namespace {

constexpr int kThreadsMap = 3, kRingMap = 4;
constexpr uint64_t kTid = 0x1234'0000'0777;  // the process's id above the thread's
constexpr uint64_t kUserPc = 0x5555'0010;
constexpr uint64_t kNow_ns = 77;

// What the kernel does for the program, and what it has of the machine.
class Kernel {
 public:
  std::optional<uint64_t> stack_end;    // of the thread, if it is followed itself
  std::optional<uint64_t> process_end;  // what its process is followed by
  uint64_t stack_pointer = 0;
  std::set<uint64_t> pages;  // those that are there, by address
  size_t room_blocks = 100;

  std::vector<OuterBlockHeader> blocks;

  // R0 at its end.
  uint64_t run(const std::vector<bpf_insn>& code) {
    std::memset(frame_, 0xab, sizeof(frame_));
    registers_[BPF_REG_10] = address_of(frame_) + sizeof(frame_);
    for (size_t at = 0; at < code.size(); ++at) {
      const bpf_insn& insn = code[at];
      if (insn.code == (BPF_JMP | BPF_EXIT)) return registers_[0];
      if (insn.code == (BPF_LD | BPF_DW | BPF_IMM)) {
        registers_[insn.dst_reg] = static_cast<uint64_t>(insn.imm);
        ++at;
      } else if (BPF_CLASS(insn.code) == BPF_JMP) {
        if (jumps(insn)) at += static_cast<size_t>(insn.off);
      } else {
        step(insn);
      }
    }
    FAIL("it does not end");
    return 0;
  }

 private:
  template <typename T>
  static uint64_t address_of(const T* pointer) {
    return reinterpret_cast<uintptr_t>(pointer);
  }

  uint64_t operand(const bpf_insn& insn) const {
    return BPF_SRC(insn.code) == BPF_X ? registers_[insn.src_reg]
                                       : static_cast<uint64_t>(int64_t{insn.imm});
  }

  bool jumps(const bpf_insn& insn) {
    const uint64_t value = registers_[insn.dst_reg], bound = operand(insn);
    switch (BPF_OP(insn.code)) {
      case BPF_CALL:
        call(insn.imm);
        return false;
      case BPF_JA:
        return true;
      case BPF_JEQ:
        return value == bound;
      case BPF_JNE:
        return value != bound;
      case BPF_JLT:
        return value < bound;
      case BPF_JGE:
        return value >= bound;
      default:
        FAIL("a jump of another kind");
        return false;
    }
  }

  void step(const bpf_insn& insn) {
    uint64_t& to = registers_[insn.dst_reg];
    const auto memory = [&](uint64_t base) {
      return reinterpret_cast<void*>(base + static_cast<uint64_t>(int64_t{insn.off}));
    };
    const size_t size_bytes = BPF_SIZE(insn.code) == BPF_DW ? 8 : 4;
    switch (BPF_CLASS(insn.code)) {
      case BPF_LDX:
        std::memcpy(&to, memory(registers_[insn.src_reg]), size_bytes);
        return;
      case BPF_STX:
        std::memcpy(memory(to), &registers_[insn.src_reg], size_bytes);
        return;
      default:
        break;
    }
    switch (BPF_OP(insn.code)) {
      case BPF_MOV:
        to = operand(insn);
        return;
      case BPF_ADD:
        to += operand(insn);
        return;
      case BPF_SUB:
        to -= operand(insn);
        return;
      case BPF_AND:
        to &= operand(insn);
        return;
      case BPF_OR:
        to |= operand(insn);
        return;
      case BPF_LSH:
        to <<= operand(insn);
        return;
      case BPF_RSH:
        to >>= operand(insn);
        return;
      default:
        FAIL("an operation of another kind");
    }
  }

  void call(int32_t helper) {
    uint64_t result = 0;
    switch (helper) {
      case BPF_FUNC_get_current_pid_tgid:
        result = kTid;
        break;
      case BPF_FUNC_map_lookup_elem:
        CHECK(registers_[1] == kThreadsMap);
        result = look_up(*reinterpret_cast<const uint32_t*>(registers_[2]));
        break;
      case BPF_FUNC_get_current_task_btf:
        result = 1;
        break;
      case BPF_FUNC_task_pt_regs:
        result = user_registers();
        break;
      case BPF_FUNC_ktime_get_ns:
        result = kNow_ns;
        break;
      case BPF_FUNC_probe_read_user:
        result = read_user(registers_[2], registers_[3]);
        break;
      case BPF_FUNC_ringbuf_reserve:
        CHECK(registers_[1] == kRingMap);
        CHECK(registers_[2] == sizeof(block_));
        result = blocks.size() < room_blocks ? address_of(block_) : 0;
        break;
      case BPF_FUNC_ringbuf_discard:
        break;
      case BPF_FUNC_ringbuf_submit:
        blocks.emplace_back();
        std::memcpy(&blocks.back(), block_, sizeof(OuterBlockHeader));
        break;
      default:
        FAIL("a helper of another kind");
    }
    for (const int scratched : {1, 2, 3, 4, 5}) registers_[scratched] = 0xdead;
    registers_[0] = result;
  }

  uint64_t look_up(uint32_t key) const {
    const bool is_process = key == key_of_process(static_cast<uint32_t>(kTid >> 32));
    if (!is_process) CHECK(key == static_cast<uint32_t>(kTid));
    const std::optional<uint64_t>& end = is_process ? process_end : stack_end;
    return end ? address_of(&*end) : 0;
  }

  uint64_t user_registers() {
#if defined(__x86_64__)
    user_registers_.rsp = stack_pointer;
    user_registers_.rip = kUserPc;
#else
    user_registers_.sp = stack_pointer;
    user_registers_.pc = kUserPc;
#endif
    return address_of(&user_registers_);
  }

  uint64_t read_user(uint64_t size_bytes, uint64_t address) const {
    const uint64_t page = address & ~(kOuterPage_bytes - 1);
    CHECK(address - page + size_bytes <= kOuterPage_bytes);
    return pages.contains(page) ? 0 : static_cast<uint64_t>(-14);  // EFAULT
  }

  uint64_t registers_[11] = {};
  std::byte frame_[512];
  std::byte block_[sizeof(OuterBlockHeader) + kOuterBlock_bytes];
#if defined(__x86_64__)
  struct pt_regs user_registers_ = {};
#else
  struct user_pt_regs user_registers_ = {};
#endif
};

constexpr uint64_t kStackEnd = 0x7fff'0000'0000;

// Of a thread whose stack ends there, that deep.
Kernel of_stack(uint64_t depth_bytes) {
  Kernel kernel;
  kernel.stack_pointer = kStackEnd - depth_bytes;
  kernel.stack_end = kStackEnd;
  for (uint64_t page = kernel.stack_pointer & ~(kOuterPage_bytes - 1); page < kStackEnd;
       page += kOuterPage_bytes) {
    kernel.pages.insert(page);
  }
  return kernel;
}

std::set<uint64_t> pages_copied(const Kernel& kernel) {
  std::set<uint64_t> pages;
  for (const OuterBlockHeader& block : kernel.blocks) {
    for (size_t i = 0; i < kOuterBlock_pages; ++i) {
      if ((block.pages_missing >> i & 1) == 0) pages.insert(block.address + i * kOuterPage_bytes);
    }
  }
  return pages;
}

const std::vector<bpf_insn>& program() {
  static const std::vector<bpf_insn> code = outer_stack_program(kThreadsMap, kRingMap);
  return code;
}

}  // namespace

TEST_CASE("every page beyond the record is copied once, by rising address, as far as it may be") {
  for (const bool end_is_known : {true, false}) {
    for (uint64_t depth = 60'000;; depth += 1'000) {
      Kernel kernel = of_stack(depth);
      if (!end_is_known) kernel.stack_end = 0;
      const uint64_t begin = (kernel.stack_pointer + kOuterBegin_bytes) & ~(kOuterPage_bytes - 1);
      // It may begin a page before.
      if (kStackEnd - begin + kOuterPage_bytes > kMaxOuterBlocks * kOuterBlock_bytes) break;
      REQUIRE(kernel.run(program()) == 1);
      uint64_t last_end = 0;
      for (const OuterBlockHeader& block : kernel.blocks) {
        CHECK(block.address >= last_end);
        last_end = block.address + kOuterBlock_bytes;
      }
      const std::set<uint64_t> copied = pages_copied(kernel);
      for (uint64_t page = begin; page < kStackEnd; page += kOuterPage_bytes) {
        INFO("depth " << depth << ", page " << page - begin);
        REQUIRE(copied.contains(page));
      }
    }
  }
}

TEST_CASE("of a stack that is too deep both ends are copied") {
  Kernel kernel = of_stack(2'000'000);
  REQUIRE(kernel.run(program()) == 1);
  CHECK(kernel.blocks.size() == kMaxOuterBlocks);
  const std::set<uint64_t> copied = pages_copied(kernel);
  CHECK(copied.contains(kStackEnd - kOuterPage_bytes));
  CHECK(copied.contains((kernel.stack_pointer + kOuterBegin_bytes) & ~(kOuterPage_bytes - 1)));
  const OuterBlockHeader& block = kernel.blocks.front();
  CHECK(block.tid == static_cast<uint32_t>(kTid));
  CHECK(block.stack_pointer == kernel.stack_pointer);
  CHECK(block.pc == kUserPc);
  CHECK(block.time_ns == kNow_ns);
}

TEST_CASE("nothing is copied of others' stacks, nor of those that the record holds") {
  Kernel of_another = of_stack(200'000);
  of_another.stack_end.reset();
  CHECK(of_another.run(program()) == 1);
  CHECK(of_another.blocks.empty());
  Kernel shallow = of_stack(40'000);
  CHECK(shallow.run(program()) == 1);
  CHECK(shallow.blocks.empty());
  shallow.pages.erase(shallow.stack_pointer & ~(kOuterPage_bytes - 1));
  CHECK(shallow.run(program()) == 1);
  CHECK(pages_copied(shallow) == shallow.pages);
  Kernel without_room = of_stack(200'000);
  without_room.room_blocks = 2;
  CHECK(without_room.run(program()) == 1);
  CHECK(without_room.blocks.size() == 2);
}

TEST_CASE("a thread that is not known is followed by its process, and its block has its own id") {
  Kernel kernel = of_stack(150'000);
  kernel.stack_end.reset();
  kernel.process_end = 0;
  REQUIRE(kernel.run(program()) == 1);
  CHECK(pages_copied(kernel).contains(kStackEnd - kOuterPage_bytes));
  CHECK(kernel.blocks.front().tid == static_cast<uint32_t>(kTid));
}

TEST_CASE("a record that ends before a missing page goes on behind it") {
  // The first one that is missing: that of the stack pointer, too.
  for (const auto& [end_is_known, first] : std::initializer_list<std::pair<bool, uint64_t>>{
           {true, 0}, {true, 2}, {false, 0}, {false, 2}}) {
    Kernel kernel = of_stack(250'000);
    if (!end_is_known) kernel.stack_end = 0;
    const uint64_t missing =
        (kernel.stack_pointer & ~(kOuterPage_bytes - 1)) + first * kOuterPage_bytes;
    for (const uint64_t page : {missing, missing + 5 * kOuterPage_bytes}) kernel.pages.erase(page);
    REQUIRE(kernel.run(program()) == 1);
    REQUIRE_FALSE(kernel.blocks.empty());
    CHECK(kernel.blocks.front().address == missing);
    const std::set<uint64_t> copied = pages_copied(kernel);
    for (const uint64_t page : kernel.pages) CHECK((page < missing || copied.contains(page)));
  }
}

TEST_CASE(
    "where the end is not known, or of another stack, copies go on while something is there") {
  for (const uint64_t end : {uint64_t{0}, kStackEnd - 300'000, kStackEnd + (uint64_t{1} << 40)}) {
    Kernel kernel = of_stack(150'000);
    kernel.stack_end = end;
    REQUIRE(kernel.run(program()) == 1);
    CHECK(pages_copied(kernel).contains(kStackEnd - kOuterPage_bytes));
    CHECK(kernel.blocks.size() < kMaxOuterBlocks / 2);
  }
}
