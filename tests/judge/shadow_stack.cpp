#include "shadow_stack.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::judge {

void ShadowStack::on_exec(uint64_t sp) {
  callers_.clear();
  regions_.clear();
  left_behind_.clear();
  region_ = region_of(sp);
}

void ShadowStack::on_step(const Step& step) {
  last_move_ = Move::Other;
  if (step.is_signal_return) return_from_signal(step.sp);
  if (!regions_[region_].holds(step.sp)) change_region(step.sp);
  const Instruction call = step.instruction;
  const uint64_t behind = step.pc_before + call.length;
  // A call of the next instruction only fetches its address (old position-independent code).
  if (call.kind == InstructionKind::Call && step.sp == step.sp_before - 8 && step.pc != behind &&
      read_word_(step.sp) == behind) {
    push_call(step);
  } else {
    drop_passed(step);
  }
}

void ShadowStack::push_call(const Step& step) {
  last_move_ = Move::Call;
  while (!callers_.empty() && callers_.back().region == region_ &&
         callers_.back().slot <= step.sp) {
    callers_.pop_back();
  }
  callers_.push_back(
      {.slot = step.sp, .pc = step.pc_before + step.instruction.length, .region = region_});
}

// Whoever lies below the stack pointer has been left: by a return, longjmp or an exception.
void ShadowStack::drop_passed(const Step& step) {
  if (settle_lifted(step)) return;
  while (!callers_.empty()) {
    Caller& top = callers_.back();
    if (top.region != region_ || top.slot >= step.sp) return;
    const bool is_return = step.instruction.kind == InstructionKind::Return;
    const bool is_popped_now = step.sp == top.slot + 8 && step.sp_before == top.slot;
    if (is_popped_now && !is_return && !top.is_interrupted && step.pc != top.pc &&
        read_word_(top.slot) == top.pc) {
      top.is_lifted = true;
      return;
    }
    if (is_popped_now && is_return) {
      if (step.pc == top.pc) last_move_ = Move::Return;
      if (step.pc != top.pc) ++odd_returns_;
    }
    callers_.pop_back();
  }
}

// glibc's vfork keeps its return address in a register over the system call: its caller is its
// caller still. True if there is nothing else to do.
bool ShadowStack::settle_lifted(const Step& step) {
  if (callers_.empty() || !callers_.back().is_lifted || callers_.back().region != region_) {
    return false;
  }
  Caller& top = callers_.back();
  if (step.sp == top.slot + 8 && step.pc != top.pc) return true;
  if (step.sp <= top.slot && read_word_(top.slot) == top.pc) {
    top.is_lifted = false;
    return true;
  }
  callers_.pop_back();
  return false;
}

void ShadowStack::on_signal(const SignalDelivery& signal) {
  const StackRegion& alternate = signal.alternate;
  if (alternate.holds(signal.sp) && !alternate.holds(signal.interrupted_sp)) {
    const auto known = std::find_if(regions_.begin(), regions_.end(), [&](const StackRegion& r) {
      return r.low == alternate.low && r.high == alternate.high;
    });
    region_ = static_cast<size_t>(known - regions_.begin());
    if (known == regions_.end()) regions_.push_back(alternate);
  }
  callers_.push_back({.slot = signal.sp + 8,
                      .pc = signal.interrupted_pc,
                      .saved_pc_at = signal.saved_pc_at,
                      .region = region_,
                      .is_interrupted = true});
  callers_.push_back({.slot = signal.sp, .pc = signal.restorer, .region = region_});
}

void ShadowStack::reread_interrupted() {
  for (Caller& caller : callers_) {
    if (caller.is_interrupted) caller.pc = read_word_(caller.saved_pc_at);
  }
}

void ShadowStack::return_from_signal(uint64_t sp) {
  const auto last = std::find_if(callers_.rbegin(), callers_.rend(),
                                 [](const Caller& caller) { return caller.is_interrupted; });
  if (last == callers_.rend()) return;
  callers_.erase(std::prev(last.base()), callers_.end());
  region_ = callers_.empty() ? region_of(sp) : callers_.back().region;
}

// Not over a signal: back to a stack that a handler had left (longjmp), or to another thread of
// control (swapcontext), whose callers are its own.
void ShadowStack::change_region(uint64_t sp) {
  const size_t from = region_;
  region_ = region_of(sp);
  if (region_ == from) return;
  ++stack_changes_;
  const auto below = std::find_if(callers_.rbegin(), callers_.rend(),
                                  [&](const Caller& caller) { return caller.region == region_; });
  if (below != callers_.rend()) {
    callers_.erase(below.base(), callers_.end());
    return;
  }
  left_behind_[from] = std::exchange(callers_, {});
  if (const auto known = left_behind_.find(region_); known != left_behind_.end()) {
    callers_ = std::move(known->second);
    left_behind_.erase(known);
    if (!drop_stale(sp)) return;
  }
  // A new stack, laid out by hand: where its first function is to return (makecontext).
  if (const uint64_t first = read_word_(sp); first != 0) {
    callers_.push_back({.slot = sp, .pc = first, .region = region_});
  }
}

// What is known of a stack that was left may be of one that ended, where another lies by now: true.
bool ShadowStack::drop_stale(uint64_t sp) {
  while (!callers_.empty() && callers_.back().slot < sp) callers_.pop_back();
  const auto is_stale = [&](const Caller& caller) {
    return !caller.is_interrupted && read_word_(caller.slot) != caller.pc;
  };
  const bool is_another = std::any_of(callers_.begin(), callers_.end(), is_stale);
  if (is_another) callers_.clear();
  return is_another;
}

size_t ShadowStack::region_of(uint64_t sp) {
  // The smaller ones lie inside others, and came later.
  for (size_t i = regions_.size(); i-- > 0;) {
    if (regions_[i].holds(sp)) return i;
  }
  const StackRegion found = find_region_(sp);
  for (size_t i = 0; i < regions_.size(); ++i) {
    if (regions_[i].low < found.high && found.low < regions_[i].high) {
      regions_[i].low = std::min(regions_[i].low, found.low);
      regions_[i].high = std::max(regions_[i].high, found.high);
      return i;
    }
  }
  regions_.push_back(found);
  return regions_.size() - 1;
}

}  // namespace sentry_prof::judge
