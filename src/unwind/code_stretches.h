// Stretches of code with one rule.
#pragma once

#include "base/address.h"
#include "unwind/compact_rule.h"
#include "unwind/module_map.h"

#include <array>
#include <cstddef>

namespace sentry_prof::unwind {

// The rule of the instruction at `begin`, and how far it holds: to the first change that it tells
// of, or to the branch by which the return was found. Read on from an instruction further on
// another return may be found first, with another rule. Empty if begin == end.
struct CodeStretch {
  LinkAddress begin, end;
  CompactRule rule;

  bool is_empty() const { return begin == end; }
  bool contains(LinkAddress pc) const { return begin <= pc && pc < end; }
};

// Remembers the last ones that were found, so that of a kernel of thousands of instructions not
// each address that a sample has is read on from: numpy's matrices take 100 us for one otherwise.
class CodeStretches {
 public:
  // That with `pc` in it; else the nearest behind it; empty if there is none of this image.
  CodeStretch at_or_behind(ImageId image, LinkAddress pc) const;
  // In the place of the one that it reaches, else of the oldest. Left out if it is empty or has no
  // rule.
  void add(ImageId image, const CodeStretch& stretch);

 private:
  struct Known {
    ImageId image = kNoImage;
    CodeStretch stretch;
  };
  std::array<Known, 16> known_{};
  size_t oldest_ = 0;
};

}  // namespace sentry_prof::unwind
