// Rules for a frame whose code says nothing of the way out of it, since it does not return: what it
// has put on the stack from where its function begins. x86-64.
#pragma once

#include "unwind/compact_rule.h"
#include "unwind/return_addresses.h"
#include "unwind/walk.h"

#include <cstdint>

namespace sentry_prof::unwind {

// Of one frame, which is not a leaf, and whose module's code is at hand. Refers to all that it is
// given; what is read is taken from `work_left`.
class FunctionSearch {
 public:
  FunctionSearch(const Module& module, RuntimeAddress pc, uint64_t sp, const StackSnapshot& stack,
                 const ModuleMap& modules, ReturnAddresses& addresses, uint32_t& work_left)
      : module_(module),
        pc_(pc),
        sp_(sp),
        stack_(stack),
        modules_(modules),
        addresses_(addresses),
        work_left_(work_left) {}

  // The rest is for frames that need no search.
  static bool has_work(uint32_t work_left) { return work_left > kMaxWork / 2; }

  // NoCfi if no call that stands above leads to this function.
  CompactRule by_caller();
  // Of the function that begins there, if it was called by what stands where the rule leads; else
  // NoCfi: what an FDE covers may be a later piece of a function (".cold"), which nobody calls.
  CompactRule from_beginning(RuntimeAddress begin);

 private:
  bool spend(uint32_t work) { return unwind::spend(work, work_left_); }
  CompactRule rule_in_function(RuntimeAddress begin);
  CompactRule rule_in_main();
  bool is_called_from_where_it_leads(RuntimeAddress function, CompactRule rule);

  const Module& module_;
  const RuntimeAddress pc_;
  const uint64_t sp_;
  const StackSnapshot& stack_;
  const ModuleMap& modules_;
  ReturnAddresses& addresses_;
  uint32_t& work_left_;
  struct {
    bool is_known = false;
    RuntimeAddress begin;
    CompactRule rule;
  } last_;  // the last answer: recursion calls one function again and again
};

}  // namespace sentry_prof::unwind
