#include "sampling/outer_stack_program.h"

#include "sampling/bpf_assembler.h"
#include "sampling/outer_block.h"

#include <cstddef>
#include <cstdint>

#include <asm/ptrace.h>

namespace sentry_prof::sampling {
namespace {

using enum BpfRegister;

#if defined(__x86_64__)
constexpr int16_t kStackPointerOffset = offsetof(struct pt_regs, rsp);
constexpr int16_t kPcOffset = offsetof(struct pt_regs, rip);
#elif defined(__aarch64__)
constexpr int16_t kStackPointerOffset = offsetof(struct user_pt_regs, sp);
constexpr int16_t kPcOffset = offsetof(struct user_pt_regs, pc);
#else
#error "sentry-prof knows the registers of x86-64 and aarch64"
#endif

// Places in the program's own stack.
constexpr int16_t kTid = -8, kStackPointer = -16, kPc = -24, kTime = -32, kAddress = -40,
                  kEndIsKnown = -48, kProcess = -56;
constexpr int32_t kPageMask = -static_cast<int32_t>(kOuterPage_bytes);
constexpr int32_t kBlockMask = -static_cast<int32_t>(kOuterBlock_bytes);
constexpr int32_t kAllPages = (1 << kOuterBlock_pages) - 1;

class OuterStackProgram {
 public:
  OuterStackProgram(int threads_map_fd, int ring_map_fd)
      : threads_map_fd_(threads_map_fd), ring_map_fd_(ring_map_fd) {}

  std::vector<bpf_insn> build() {
    find_thread();
    note_sample();
    find_end();
    find_begin();
    for (size_t i = 0; i < kMaxOuterBlocks / 2; ++i) copy_inner_block(i);
    for (size_t i = kMaxOuterBlocks / 2; i < kMaxOuterBlocks; ++i) copy_outer_block(i);
    for (const BpfAssembler::Jump jump : to_end_) code_.lands(jump);
    code_.move(R0, 1);  // the sample is written
    code_.exit();
    return code_.take();
  }

 private:
  // R9: the end of its stack.
  void find_thread() {
    code_.call(BPF_FUNC_get_current_pid_tgid);
    code_.store(Frame, kTid, R0);  // the lower half is the thread's, on little-endian machines
    look_up(kTid);
    const auto is_known = code_.jump_if_not_zero(R0);
    code_.load(R1, Frame, kTid);
    code_.shift_right(R1, 32);
    code_.move(R2, static_cast<int32_t>(kProcessKey));
    code_.bit_or(R1, R2);
    code_.store(Frame, kProcess, R1);
    look_up(kProcess);
    to_end_.push_back(code_.jump_if_zero(R0));
    code_.lands(is_known);
    code_.load(R9, R0, 0);
  }

  // R0: where the value is.
  void look_up(int16_t key) {
    code_.load_map(R1, threads_map_fd_);
    code_.move(R2, Frame);
    code_.add(R2, key);
    code_.call(BPF_FUNC_map_lookup_elem);
  }

  // R8: its stack pointer.
  void note_sample() {
    code_.call(BPF_FUNC_get_current_task_btf);
    code_.move(R1, R0);
    code_.call(BPF_FUNC_task_pt_regs);
    code_.load(R8, R0, kStackPointerOffset);
    code_.load(R1, R0, kPcOffset);
    code_.store(Frame, kStackPointer, R8);
    code_.store(Frame, kPc, R1);
    code_.call(BPF_FUNC_ktime_get_ns);
    code_.store(Frame, kTime, R0);
  }

  // R9: where it is not known, or of another stack, as far as copies may go, or farther.
  void find_end() {
    code_.store(Frame, kEndIsKnown, R9);
    code_.move(R1, R8);
    code_.add(R1, static_cast<int32_t>(kMaxStackDistance_bytes));
    const auto is_below = code_.jump_if_below(R9, R8);
    const auto is_known = code_.jump_if_below(R9, R1);
    code_.lands(is_below);
    code_.move(R9, R8);
    code_.add(R9, static_cast<int32_t>(kOuterBegin_bytes + kMaxOuterBlocks * kOuterBlock_bytes));
    code_.move(R1, 0);
    code_.store(Frame, kEndIsKnown, R1);
    code_.lands(is_known);
  }

  // R8: the first page that the record does not have. R9: behind a whole number of blocks.
  void find_begin() {
    code_.bit_and(R8, kPageMask);
    std::vector<BpfAssembler::Jump> found;
    for (size_t page = 0; page * kOuterPage_bytes <= kOuterBegin_bytes; ++page) {
      if (page > 0) code_.add(R8, static_cast<int32_t>(kOuterPage_bytes));
      to_end_.push_back(code_.jump_if_not_below(R8, R9));
      look_at_page();
      found.push_back(code_.jump_if_not_zero(R0));
    }
    for (const BpfAssembler::Jump jump : found) code_.lands(jump);
    code_.load(R1, Frame, kEndIsKnown);
    const auto is_known = code_.jump_if_not_zero(R1);
    code_.move(R9, R8);
    code_.add(R9, static_cast<int32_t>(kMaxOuterBlocks * kOuterBlock_bytes));
    code_.lands(is_known);
    code_.subtract(R9, R8);
    code_.add(R9, static_cast<int32_t>(kOuterBlock_bytes - 1));
    code_.bit_and(R9, kBlockMask);
    code_.add(R9, R8);
  }

  // Whether that at R8 is there: the record ends before one that is not.
  void look_at_page() {
    code_.move(R1, Frame);
    code_.add(R1, kAddress);
    code_.move(R2, static_cast<int32_t>(sizeof(uint64_t)));
    code_.move(R3, R8);
    code_.call(BPF_FUNC_probe_read_user);
  }

  void copy_inner_block(size_t index) {
    code_.move(R7, R8);
    code_.add(R7, static_cast<int32_t>(index * kOuterBlock_bytes));
    to_end_.push_back(code_.jump_if_not_below(R7, R9));
    copy_block();
  }

  // Those that are among the inner ones are left out.
  void copy_outer_block(size_t index) {
    code_.move(R1, R8);
    code_.add(R1, static_cast<int32_t>(kMaxOuterBlocks / 2 * kOuterBlock_bytes));
    code_.move(R7, R9);
    code_.add(R7, -static_cast<int32_t>((kMaxOuterBlocks - index) * kOuterBlock_bytes));
    const auto is_copied = code_.jump_if_below(R7, R1);
    copy_block();
    code_.lands(is_copied);
  }

  // At R7. R6: where to.
  void copy_block() {
    code_.store(Frame, kAddress, R7);
    code_.load_map(R1, ring_map_fd_);
    code_.move(R2, static_cast<int32_t>(sizeof(OuterBlockHeader) + kOuterBlock_bytes));
    code_.move(R3, 0);
    code_.call(BPF_FUNC_ringbuf_reserve);
    to_end_.push_back(code_.jump_if_zero(R0));  // it is full
    code_.move(R6, R0);
    copy_field(kTid, offsetof(OuterBlockHeader, tid));  // the next one is written behind it
    copy_field(kStackPointer, offsetof(OuterBlockHeader, stack_pointer));
    copy_field(kPc, offsetof(OuterBlockHeader, pc));
    copy_field(kTime, offsetof(OuterBlockHeader, time_ns));
    copy_field(kAddress, offsetof(OuterBlockHeader, address));
    code_.move(R7, 0);
    for (size_t page = 0; page < kOuterBlock_pages; ++page) copy_page(page);
    code_.store_u32(R6, offsetof(OuterBlockHeader, pages_missing), R7);
    submit_block();
  }

  void copy_field(int16_t from, size_t to) {
    code_.load(R1, Frame, from);
    code_.store(R6, static_cast<int16_t>(to), R1);
  }

  // R7 gets its bit if it cannot be read: the helper returns a negative number.
  void copy_page(size_t page) {
    const auto offset_bytes = static_cast<int32_t>(page * kOuterPage_bytes);
    code_.move(R1, R6);
    code_.add(R1, static_cast<int32_t>(sizeof(OuterBlockHeader)) + offset_bytes);
    code_.move(R2, static_cast<int32_t>(kOuterPage_bytes));
    code_.load(R3, Frame, kAddress);
    code_.add(R3, offset_bytes);
    code_.call(BPF_FUNC_probe_read_user);
    code_.shift_right(R0, 63);
    code_.shift_left(R0, static_cast<int32_t>(page));
    code_.bit_or(R7, R0);
  }

  // If a page of it is there. Where the end is not known, none says that it was passed.
  void submit_block() {
    code_.move(R1, R6);
    code_.move(R2, BPF_RB_NO_WAKEUP);
    code_.add(R7, -kAllPages);
    const auto is_empty = code_.jump_if_zero(R7);
    code_.call(BPF_FUNC_ringbuf_submit);
    const auto is_submitted = code_.jump();
    code_.lands(is_empty);
    code_.call(BPF_FUNC_ringbuf_discard);
    code_.load(R1, Frame, kEndIsKnown);
    to_end_.push_back(code_.jump_if_zero(R1));
    code_.lands(is_submitted);
  }

  BpfAssembler code_;
  std::vector<BpfAssembler::Jump> to_end_;
  int threads_map_fd_, ring_map_fd_;
};

}  // namespace

std::vector<bpf_insn> outer_stack_program(int threads_map_fd, int ring_map_fd) {
  return OuterStackProgram(threads_map_fd, ring_map_fd).build();
}

}  // namespace sentry_prof::sampling
