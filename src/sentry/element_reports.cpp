#include "sentry/element_reports.h"

#include "sentry/text_places.h"

#include <algorithm>

#include <fmt/format.h>

namespace sentry_prof::sentry {

uint32_t& ElementReports::pending_of(std::string_view rule) {
  for (auto& [id, count] : counts_) {
    if (id == rule) return count;
  }
  return counts_.emplace_back(rule, 0).second;
}

bool ElementReports::takes(std::string_view rule) {
  uint32_t& pending = pending_of(rule);
  if (pending < ProblemList::kListedPerRule && problems_.lists(rule)) {
    ++pending;
    return true;
  }
  problems_.count(rule);
  return false;
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
}

}  // namespace sentry_prof::sentry
