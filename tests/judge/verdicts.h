// What became of the walks that were judged: counts, and classes of disagreement.
#pragma once

#include "address_space.h"
#include "shadow_stack.h"
#include "unwind/walk.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sentry_prof::judge {

enum class Difference : uint8_t {
  None,
  OtherStack,   // right as far as the stack that was copied goes, and the walk says that it ended
                // outside: behind a signal handler on a stack of its own
  AheadOfJump,  // describes the place that longjmp or swapcontext is about to go to
  Rewritten,    // gives what lies where the return address did: the code itself has changed it, and
                // goes there (exceptions)
  EndedEarly,   // all frames right, but callers are missing
  WrongFrame,   // a frame that is no caller
  WentPastRoot,
  NoRoot,  // all frames right and none missing, but the walk does not say that it is complete
};

// How one walk compares with the callers that were seen.
struct Comparison {
  Difference difference = Difference::None;
  size_t frame = 0;  // the first that differs; the one before it led there
  uint64_t expected = 0;
  uint64_t got = 0;
  unwind::WalkEnd end = unwind::WalkEnd::Root;
};

Comparison compare(const unwind::Walk& walk, std::span<const ShadowStack::Caller> outermost_first,
                   uint64_t leaf_pc, const AddressSpace& space);

class Verdicts {
 public:
  struct Example {
    uint64_t leaf_pc = 0;
    Comparison comparison;
    std::string expected, got;  // places
  };

  void add_agreement() { ++agreeing_; }
  // `culprit`: the frame whose caller is not the right one; `leaf_pc` in the process.
  void add(const Comparison& comparison, AddressSpace::Place culprit, uint64_t leaf_pc,
           const AddressSpace& space);

  uint64_t judged() const { return agreeing_ + on_other_stack_ + ahead_of_jump_ + disagreeing_; }
  uint64_t agreeing() const { return agreeing_; }
  uint64_t on_other_stack() const { return on_other_stack_; }
  uint64_t ahead_of_jump() const { return ahead_of_jump_; }
  uint64_t disagreeing() const { return disagreeing_; }

  // One line a class, the most frequent first.
  std::vector<std::string> classes(const AddressSpace& space, size_t limit) const;

 private:
  struct Key {
    AddressSpace::Place culprit;
    Difference difference = Difference::None;
    unwind::WalkEnd end = unwind::WalkEnd::Root;
    auto operator<=>(const Key&) const = default;
  };
  struct Class {
    uint64_t count = 0;
    Example example;
  };

  uint64_t& count_of(Difference difference);

  uint64_t agreeing_ = 0;
  uint64_t on_other_stack_ = 0;
  uint64_t ahead_of_jump_ = 0;
  uint64_t disagreeing_ = 0;
  std::map<Key, Class> classes_;  // by instruction
};

}  // namespace sentry_prof::judge
