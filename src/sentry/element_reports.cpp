#include "sentry/element_reports.h"

#include "sentry/text_places.h"

#include <algorithm>

#include <fmt/format.h>

namespace sentry_prof::sentry {

ElementReports::Counts& ElementReports::counts_of(std::string_view rule) {
  for (Counts& counts : counts_) {
    if (counts.rule == rule) return counts;
  }
  return counts_.emplace_back(Counts{rule, 0, 0});
}

bool ElementReports::takes(std::string_view rule) {
  Counts& counts = counts_of(rule);
  const bool is_told = counts.pending < ProblemList::kListedPerRule && problems_.lists(rule);
  if (is_told) {
    ++counts.pending;
  } else {
    ++counts.unlisted;
  }
  return is_told;
}

void ElementReports::add(std::string_view rule, size_t index, std::string_view member,
                         std::string message) {
  pending_.push_back({rule, index, member, std::move(message)});
}

void ElementReports::add_whole(std::string_view rule, std::string message) {
  problems_.add(rule, std::string(pointer_), array_offset_, std::move(message));
}

void ElementReports::report() && {
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const Pending& a, const Pending& b) { return a.index < b.index; });
  std::vector<size_t> indices;
  for (const Pending& each : pending_) indices.push_back(each.index);
  const std::vector<size_t> offsets = element_offsets(text_, array_offset_, indices);
  for (size_t i = 0; i < pending_.size(); ++i) {
    Pending& each = pending_[i];
    std::string pointer = fmt::format("{}/{}", pointer_, each.index);
    size_t offset = offsets[i];
    if (!each.member.empty()) {
      offset = member_offset(text_, offset, each.member);
      if (offset != offsets[i]) pointer.append("/").append(each.member);
    }
    problems_.add(each.rule, std::move(pointer), offset, std::move(each.message));
  }
  for (const Counts& counts : counts_) problems_.count(counts.rule, counts.unlisted);
}

}  // namespace sentry_prof::sentry
