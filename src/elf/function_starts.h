// Where functions begin by an image's unwind information, for images whose symbols are gone.
#pragma once

#include "elf/cfi_lookup.h"
#include "elf/cfi_table.h"

#include <memory>
#include <optional>
#include <utility>

namespace sentry_prof::elf {

// Made by CfiTable::function_starts(). Any thread may ask.
class FunctionStarts {
 public:
  // `sections` are those that the look-ups view.
  FunctionStarts(std::shared_ptr<const CfiSections> sections, FrameLookup eh_frame,
                 FrameLookup debug_frame)
      : sections_(std::move(sections)),
        eh_frame_(std::move(eh_frame)),
        debug_frame_(std::move(debug_frame)) {}

  // What the FDE that covers `pc` covers, .eh_frame's first; none if no FDE is known to. Compilers
  // write one FDE for each contiguous piece of a function. One of hand-written assembly may cover
  // several, as the one of the PLT does.
  std::optional<LinkRange> function_at(LinkAddress pc) const {
    const auto function = eh_frame_.range_at(pc.value);
    return function ? function : debug_frame_.range_at(pc.value);
  }

  // Whether an FDE is known that begins in (after, up_to].
  bool has_begin_in(LinkAddress after, LinkAddress up_to) const {
    const auto is_inside = [&](const FrameLookup& lookup) {
      const auto begin = lookup.last_begin(up_to.value);
      return begin && *begin > after;
    };
    return is_inside(eh_frame_) || is_inside(debug_frame_);
  }

 private:
  std::shared_ptr<const CfiSections> sections_;
  FrameLookup eh_frame_;
  FrameLookup debug_frame_;
};

// To be asked in ascending order of addresses: those of one function are looked up once. Where FDEs
// overlap, which linkers do not let them, an inner one may be passed over.
class SortedFunctionStarts {
 public:
  explicit SortedFunctionStarts(const FunctionStarts& starts) : starts_(starts) {}

  // Where the function at `pc` begins; none if that is not known.
  std::optional<LinkAddress> start_at(LinkAddress pc) {
    if (!last_.contains(pc)) {
      const auto function = starts_.function_at(pc);
      if (!function) return std::nullopt;
      last_ = *function;
    }
    return last_.begin;
  }

 private:
  const FunctionStarts& starts_;
  LinkRange last_;  // empty at first
};

}  // namespace sentry_prof::elf
