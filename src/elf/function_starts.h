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

 private:
  std::shared_ptr<const CfiSections> sections_;
  FrameLookup eh_frame_;
  FrameLookup debug_frame_;
};

}  // namespace sentry_prof::elf
