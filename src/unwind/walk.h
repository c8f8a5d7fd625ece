// The walk: registers + stack bytes + module map -> frames, and how each was found.
#pragma once

#include "unwind/code_facts.h"
#include "unwind/left_stack.h"
#include "unwind/module_map.h"
#include "unwind/registers.h"
#include "unwind/rule_cache.h"
#include "unwind/stack_snapshot.h"
#include "unwind/walk_memory.h"
#include "unwind/walked_frame.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace sentry_prof::unwind {

// Why a walk ended. Root is the only complete one.
enum class WalkEnd : uint8_t {
  Root,  // the thread's outermost frame: undefined return address, one of 0 by a row or in the link
         // register, the ELF entry point, a function or code that never returns, entered by a
         // return that no call made, or where no CFI is a frame pointer of 0 (x86-64: below no
         // return address of a direct call) or the beginning of the process's stack
  StackTruncated,   // the next word lies beyond the copied bytes, and the copy was cut
  BadMemory,        // the next word lies elsewhere outside the snapshot
  UnmappedPc,       // a pc that no executable mapping holds
  NoUnwindInfo,     // no CFI, and the frame pointer leads nowhere
  OtherStack,       // the code changed the stack, or a signal did: the caller is on another one
  BadCfi,           // malformed unwind information
  Unsupported,      // unwind information beyond our limits
  UnknownRegister,  // a rule needs a register that nobody saved
  NoProgress,       // the CFA did not grow
  FrameLimit,       // deeper than kMaxWalkedFrames
};
inline constexpr size_t kWalkEndCount = 11;
std::string_view name_of(WalkEnd end);

// Borrowed from the Unwinder; valid until its next walk.
struct Walk {
  // Leaf first; empty only if the leaf pc is unmapped or not known.
  std::span<const WalkedFrame> frames;
  WalkEnd end = WalkEnd::UnmappedPc;
  RuntimeAddress missing;  // of StackTruncated: the word that was not copied
  // Of OtherStack, by the code: the frame pointer of what called it on that stack; 0: not known.
  uint64_t left_frame_pointer = 0;
  // With a memory: the steps behind the last row that took all registers, innermost first, without
  // those that were remembered.
  std::span<const WalkStep> steps;
  // Behind the first kMaxFrames / 2 frames: so many that were walked through and are not kept.
  size_t frames_left_out = 0;
  // Whether a memory can learn of it: it was given one, and did not take all registers.
  bool is_followed = false;

  size_t frames_walked() const { return frames.size() + frames_left_out; }
  // Of frames[index], counted from the leaf over all that were walked.
  size_t number_of(size_t index) const;
  bool is_complete() const { return end == WalkEnd::Root; }
};

// Deep recursion is real (tens of thousands of frames occur); nobody draws or reads such a stack,
// but it begins at its root like all others. So it is walked to its end, and its innermost and
// outermost frames are kept.
inline constexpr size_t kMaxFrames = 2048;
// As many as a stack of 1 MiB can have. Walking them takes about a millisecond; beyond that a walk
// is cut and counted.
inline constexpr size_t kMaxWalkedFrames = (1u << 20) / 16;

inline size_t Walk::number_of(size_t index) const {
  return index < kMaxFrames / 2 ? index : index + frames_left_out;
}

// What one walk may cost beyond the steps from frame to frame: bytes of CFI programs that it runs,
// steps of expressions, instructions and pieces of code that it reads, some 2 to 4 ms, and up to 12
// where tables are made to be slow. A first walk of real programs takes below 25,000; the longest
// real CFI program has 60,755 bytes (CfiLimits). Then it ends: Unsupported. A walk that had to be
// done again over all registers, and came less far, is done a third time.
inline constexpr uint32_t kMaxWork = 1u << 19;

// Of the stack that a walk left.
struct LeftStackWalk {
  Walk walk;
  bool is_of_callee = false;  // LeavingCall
};

struct UnwinderStats {
  uint64_t cache_hits = 0;
  uint64_t cache_misses = 0;
  uint64_t full_rows = 0;          // frames that took the full path over all registers
  uint64_t restarts = 0;           // walks done again with all registers
  uint64_t remembered_frames = 0;  // frames taken from the thread's last walk
};

// Not thread-safe; one per recording thread. Memory: the rule cache (fixed) plus kMaxFrames frames
// and 2 * kMaxRememberedSteps steps, of which the deepest stack so far has touched its part.
class Unwinder {
 public:
  // `memory_code` is asked for code that has no image, by its runtime address; not owned; null: it
  // cannot be looked at.
  explicit Unwinder(Arch arch, size_t cache_bytes = kDefaultRuleCache_bytes,
                    const CodeSource* memory_code = nullptr);

  // Never reads outside `stack`, ends after kMaxWalkedFrames or kMaxWork at the latest. Allocates
  // nothing itself but what `memory` grows by; an image's CfiSource may when it is first asked. A
  // failing walk yields its good part. `registers` must know pc, sp and, for frames that use them,
  // fp and the link register. `memory` is what is known of the thread from its last walk, and makes
  // the walk faster, never other, as long as the code of frames that stand does not change; null:
  // nothing.
  Walk walk(const Registers& registers, const StackSnapshot& stack, const ModuleMap& modules,
            WalkMemory* memory = nullptr) {
    const Walk result = walk(registers, stack, modules, memory, AtEndOfCopy::Ends);
    if (memory != nullptr && result.is_complete()) learn(*memory, modules);
    return result;
  }

  // The same of the stack that was walked last, where the memory code is not what it found.
  Walk walk_again(const Registers& registers, const StackSnapshot& stack, const ModuleMap& modules,
                  WalkMemory* memory);

  // walk() over a stack whose outer part was read later, and may be another one's: the frames
  // behind the first `copied_frames` are live, and `memory` learns nothing.
  Walk walk_live(const Registers& registers, const StackSnapshot& stack, const ModuleMap& modules,
                 WalkMemory& memory, size_t copied_frames);

  // Whether the last walk, which reached its root and had `live_frames` at its outer end that were
  // not copied, found the memory's outermost frames there, at the same places; of deep recursion as
  // many as are remembered. Not known, so false, where one of them took a whole row.
  bool ends_as(const WalkMemory& memory, size_t live_frames) const;

  // For a walk that ended as StackTruncated, where nothing more is known of the stack: the same,
  // and from its last frame on as the thread's last whole walk went, if that came through the same
  // last frames (kFramesInCommon): pc, stack pointer and frame pointer. These may have returned in
  // between and have been called again from elsewhere; docs/fidelity.md has how often. The outer
  // frames are marked, and `memory` learns nothing.
  Walk join(const Registers& registers, const StackSnapshot& stack, const ModuleMap& modules,
            WalkMemory& memory);

  // For a walk, the last one, that ended as OtherStack: the same, and from there on as the kernel
  // went by frame pointers, if that can be believed (FramePointerChain::beyond()). The frame that
  // called the one which changed stacks is missing if this one keeps no frame of its own.
  Walk follow(const Walk& walk, std::span<const uint64_t> frame_pointer_chain,
              const ModuleMap& modules);

  // A stack that was left, as it is now. No frames unless the call by which it was left is found
  // (call_on_left_stack()) and leads to its root. All are marked as live.
  LeftStackWalk walk_left_stack(const LeftStack& left, const StackSnapshot& now,
                                const ModuleMap& modules);

  // What the last walk saw, which reached its root in `modules`. Nothing, if it was not followed.
  void learn(WalkMemory& memory, const ModuleMap& modules);

  const UnwinderStats& stats() const { return stats_; }

 private:
  enum class AtEndOfCopy : uint8_t { Ends, Joins };
  Walk walk(const Registers& registers, const StackSnapshot& stack, const ModuleMap& modules,
            WalkMemory* memory, AtEndOfCopy at_end_of_copy, FrameOrigin first = FrameOrigin::Leaf);

  Arch arch_;
  RuleCache cache_;
  std::unique_ptr<CodeFacts> code_facts_;
  UnwinderStats stats_;
  std::unique_ptr<std::array<WalkedFrame, kMaxFrames>> frames_;
  std::vector<WalkStep> steps_;     // of the walk that is going on, or was the last
  std::span<const WalkStep> kept_;  // its outer steps, in the memory that it was given
  bool steps_are_followed_ = false;
};

}  // namespace sentry_prof::unwind
