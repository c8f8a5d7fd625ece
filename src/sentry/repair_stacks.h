// Which stacks and frames of a profile stay, under which numbers. See repair.h.
#pragma once

#include "sentry/list_spans.h"
#include "sentry/profile_facts.h"
#include "sentry/repair_changes.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::sentry {

// A list whose elements are referred to by number.
struct Renumbering {
  std::vector<Span> spans;        // of all elements, in the text
  std::vector<uint32_t> chosen;   // those that stay, by their old numbers, in order
  std::vector<uint32_t> numbers;  // the new number, by the old one
  bool is_changed = false;        // if not, only that is set
};

// `stacks`: of elements equal to one another the first stays, and what nobody refers to goes,
// but for the empty stack.
// Indices that lead nowhere would lead somewhere else then: a list at which such ones point stays
// as it is.
struct StacksAndFrames {
  Renumbering stacks, frames;
};
StacksAndFrames choose_stacks(const ProfileFacts& facts, std::string_view text,
                              const ListPlaces& places, ChangeList& changes);

// A stack's text with its frames' new numbers.
void append_renumbered(std::string& out, std::string_view stack,
                       const std::vector<uint32_t>& numbers);

}  // namespace sentry_prof::sentry
