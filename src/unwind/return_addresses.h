// What can be said of an address as a return address, in the target as a sample shows it.
#pragma once

#include "unwind/call_site.h"
#include "unwind/code_address_mask.h"
#include "unwind/code_facts.h"
#include "unwind/code_source.h"
#include "unwind/module_map.h"
#include "unwind/stack_snapshot.h"

#include <cstdint>

namespace sentry_prof::unwind {

// Return addresses that stand in a range of the stack; of several the innermost.
struct CallsAbove {
  uint32_t count = 0;
  uint64_t slot = 0;
  uint64_t return_address = 0;
  CallKind kind = CallKind::None;
};

// Of one walk, whose work the reading of code is: `work_left` is taken from. Refers to all that it
// is given. Where no work is left no address is known to be behind a call.
class ReturnAddresses {
 public:
  ReturnAddresses(Arch arch, const ModuleMap& modules, CodeFacts& code_facts, uint32_t& work_left)
      : mask_(arch == Arch::Aarch64 ? code_address_mask(modules) : UINT64_MAX),
        modules_(modules),
        memory_code_(code_facts.memory_rules.code()),
        call_sites_(code_facts.call_sites),
        work_left_(work_left) {}

  // Null where nothing is mapped. Neighbouring frames are mostly of one module.
  const Module* module_at(uint64_t pc) {
    if (last_module_ != nullptr && pc >= last_module_->begin.value &&
        pc < last_module_->end.value) {
      return last_module_;
    }
    const Module* found = modules_.find({pc});
    if (found != nullptr) last_module_ = found;
    return found;
  }

  uint64_t without_signature(uint64_t return_address) const { return return_address & mask_; }

  // A return address of zero, where no caller can be: Linux maps nothing there (vm.mmap_min_addr).
  // Runtimes that lay out first frames by hand end them so (Go's goroutines, coroutines), and
  // debuggers take it for the outermost frame, too.
  bool is_nobody(uint64_t return_address) const { return without_signature(return_address) == 0; }

  // Unknown where code is that cannot be read.
  CallSite call_behind(uint64_t return_address);
  // A call's, or what a signal handler returns to, which the kernel put there.
  bool is_behind_call(uint64_t return_address);
  bool leads_to_memory_code(uint64_t return_address);
  bool has_cfi_at(const Module& module, LinkAddress pc);

  // In [begin, end), as far as the copy goes. Two stand for more, for work that is used up, and for
  // code that cannot be read, which may have a call there: these prove nothing.
  CallsAbove calls_between(const StackSnapshot& stack, uint64_t begin, uint64_t end);
  // The innermost of them, if there is one; its kind may be Unknown. Two: no work is left.
  CallsAbove innermost_call(const StackSnapshot& stack, uint64_t begin, uint64_t end);

 private:
  bool spend(uint32_t work) { return unwind::spend(work, work_left_); }
  bool is_signal_return(uint64_t return_address);

  const uint64_t mask_;
  const ModuleMap& modules_;
  const CodeSource* const memory_code_;  // may be null
  CallSites& call_sites_;
  uint32_t& work_left_;
  const Module* last_module_ = nullptr;  // where a pc was found last
};

}  // namespace sentry_prof::unwind
