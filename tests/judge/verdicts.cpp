#include "verdicts.h"

#include <algorithm>

#include <fmt/format.h>

namespace sentry_prof::judge {
namespace {

std::string name_of(Difference difference, unwind::WalkEnd end) {
  switch (difference) {
    case Difference::None:
      return "none";
    case Difference::OtherStack:
      return "on another stack";
    case Difference::AheadOfJump:
      return "ahead of a jump";
    case Difference::Rewritten:
      return "return address rewritten";
    case Difference::EndedEarly:
      return fmt::format("ended early: {}", unwind::name_of(end));
    case Difference::WrongFrame:
      return "wrong frame";
    case Difference::WentPastRoot:
      return "went past the root";
    case Difference::NoRoot:
      break;
  }
  return fmt::format("no root: {}", unwind::name_of(end));
}

std::string described(AddressSpace::Place place, const AddressSpace& space) {
  return fmt::format("{}@{:#x}", space.functions_of({place}).front(), place.link_pc);
}

// Further out than the copied stack: the walk stepped over a signal frame and could not read on.
bool is_elsewhere(unwind::WalkEnd end, std::span<const ShadowStack::Caller> missing,
                  const ShadowStack::Caller& last_found) {
  return end == unwind::WalkEnd::OtherStack && last_found.is_interrupted && !missing.empty() &&
         missing.back().region != last_found.region;
}

}  // namespace

Comparison compare(const unwind::Walk& walk, std::span<const ShadowStack::Caller> outermost_first,
                   uint64_t leaf_pc, const AddressSpace& space) {
  const size_t callers = outermost_first.size();
  Comparison result{.end = walk.end};
  const auto differs = [&](Difference difference, size_t frame, uint64_t expected, uint64_t got) {
    result.difference = difference;
    result.frame = frame;
    result.expected = expected;
    result.got = got;
    return result;
  };
  for (size_t i = 0; i < walk.frames.size(); ++i) {
    const uint64_t got = space.runtime_pc(walk.frames[i]);
    if (i > callers) return differs(Difference::WentPastRoot, i, 0, got);
    const uint64_t expected = i == 0 ? leaf_pc : outermost_first[callers - i].pc;
    const bool is_exact = i == 0 || outermost_first[callers - i].is_interrupted;
    // Nobody called a stack's first frame: the walk may take it to be at its first instruction.
    const bool may_be_exact = is_exact || (i == callers && walk.is_complete());
    const bool is_said_exact = walk.frames[i].pc_is_exact;
    if (got != expected || (is_said_exact ? !may_be_exact : is_exact)) {
      return differs(Difference::WrongFrame, i, expected, got);
    }
  }
  const size_t found = walk.frames.size();
  if (found <= callers) {
    const uint64_t expected = found == 0 ? leaf_pc : outermost_first[callers - found].pc;
    const bool ends_elsewhere =
        found > 1 && is_elsewhere(walk.end, outermost_first.first(callers - found + 1),
                                  outermost_first[callers - found + 1]);
    return differs(ends_elsewhere ? Difference::OtherStack : Difference::EndedEarly, found,
                   expected, 0);
  }
  if (!walk.is_complete()) return differs(Difference::NoRoot, found, 0, 0);
  return result;
}

void Verdicts::add(const Comparison& comparison, AddressSpace::Place culprit, uint64_t leaf_pc,
                   const AddressSpace& space) {
  ++count_of(comparison.difference);
  Class& entry = classes_[{culprit, comparison.difference, comparison.end}];
  if (entry.count++ == 0) {
    entry.example = {leaf_pc, comparison, described(space.place_of(comparison.expected), space),
                     described(space.place_of(comparison.got), space)};
  }
}

uint64_t& Verdicts::count_of(Difference difference) {
  if (difference == Difference::OtherStack) return on_other_stack_;
  const bool is_ahead =
      difference == Difference::AheadOfJump || difference == Difference::Rewritten;
  if (is_ahead) return ahead_of_jump_;
  return disagreeing_;
}

std::vector<std::string> Verdicts::classes(const AddressSpace& space, size_t limit) const {
  std::vector<AddressSpace::Place> places;
  for (const auto& [key, entry] : classes_) places.push_back(key.culprit);
  const std::vector<std::string> names = space.functions_of(places);

  struct Sum {
    uint64_t count = 0;
    uint64_t culprit_pc = 0;
    Example example;
  };
  std::map<std::string, Sum> sums;
  size_t i = 0;
  for (const auto& [key, entry] : classes_) {
    Sum& sum = sums[fmt::format("{}: {}", names[i++], name_of(key.difference, key.end))];
    if (sum.count == 0) {
      sum.example = entry.example;
      sum.culprit_pc = key.culprit.link_pc;
    }
    sum.count += entry.count;
  }
  std::vector<std::pair<std::string, Sum>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  std::vector<std::string> lines;
  for (const auto& [name, sum] : sorted) {
    if (lines.size() == limit) break;
    lines.push_back(
        fmt::format("{:9}  {}  e.g. frame {} of leaf {:#x}, led to from {:#x}: expected {}, got {}",
                    sum.count, name, sum.example.comparison.frame, sum.example.leaf_pc,
                    sum.culprit_pc, sum.example.expected, sum.example.got));
  }
  return lines;
}

}  // namespace sentry_prof::judge
