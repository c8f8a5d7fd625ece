#include "sentry/problem_list.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::sentry {

namespace {

std::string_view http_prefix() { return "HTTP "; }

void refuse(const Rule& rule, Verdict& verdict) {
  verdict.valid = false;
  if (!rule.reason.starts_with(http_prefix())) {
    verdict.reason = rule.reason;
    return;
  }
  verdict.http_status = rule.reason == "HTTP 413" ? 413 : 400;
}

}  // namespace

ProblemList::ProblemList(const ValidateOptions& options)
    : options_(options), counts_(all_rules().size()) {}

bool ProblemList::is_against_relay(const Rule& rule) const {
  if (!options_.against_relay || rule.relay == RelayEffect::Accepts) return false;
  return !(rule.is_mended_by_upload && options_.against_documents);
}

bool ProblemList::is_against_documents(const Rule& rule) const {
  return options_.against_documents && rule.documents != DocumentsEffect::Silent;
}

// Both books together are the widest look: then a rule on which both are silent (something odd) is
// told as well.
bool ProblemList::is_noted(const Rule& rule) const {
  if (options_.against_relay && options_.against_documents) return true;
  return is_against_relay(rule) || is_against_documents(rule);
}

Severity ProblemList::severity(const Rule& rule) const {
  if (options_.against_relay && options_.against_documents) return rule.severity;
  const bool is_error = options_.against_relay ? rule.relay == RelayEffect::Refuses
                                               : rule.documents == DocumentsEffect::Must;
  return is_error ? Severity::Error : Severity::Warning;
}

bool ProblemList::lists(std::string_view rule_id) const {
  const Rule* const rule = find_rule(rule_id);
  return is_noted(*rule) && counts_of(*rule).listed < kListedPerRule;
}

void ProblemList::add(std::string_view rule_id, std::string pointer, size_t offset_bytes,
                      std::string message) {
  const Rule& rule = *find_rule(rule_id);
  if (!is_noted(rule)) return;
  Counts& counts = counts_of(rule);
  if (counts.listed == kListedPerRule) {
    ++counts.unlisted;
    return;
  }
  ++counts.listed;
  entries_.push_back(
      {&rule, pointer_prefix_ + pointer, base_bytes_ + offset_bytes, std::move(message)});
}

void ProblemList::count(std::string_view rule_id, uint64_t how_many) {
  const Rule& rule = *find_rule(rule_id);
  if (is_noted(rule)) counts_of(rule).unlisted += how_many;
}

ProblemList::Mark ProblemList::mark() const { return {entries_.size(), counts_}; }

void ProblemList::go_back_to(const Mark& mark) {
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(mark.entries), entries_.end());
  counts_ = mark.counts;
}

void ProblemList::set_base(std::string pointer_prefix, size_t offset_bytes) {
  pointer_prefix_ = std::move(pointer_prefix);
  base_bytes_ = offset_bytes;
}

ProblemList::Counts& ProblemList::counts_of(const Rule& rule) {
  return counts_[static_cast<size_t>(&rule - all_rules().data())];
}

const ProblemList::Counts& ProblemList::counts_of(const Rule& rule) const {
  return counts_[static_cast<size_t>(&rule - all_rules().data())];
}

void ProblemList::judge(ValidationReport& report) const {
  const Rule* first_refused = nullptr;
  for (const Rule& rule : all_rules()) {
    if (counts_of(rule).listed + counts_of(rule).unlisted == 0) continue;
    if (severity(rule) == Severity::Error) report.valid = false;
    if (is_against_documents(rule) && rule.documents == DocumentsEffect::Must) {
      report.documents.valid = false;
    }
    if (rule.relay == RelayEffect::Unknown && is_against_relay(rule)) report.relay.is_known = false;
    if (rule.relay != RelayEffect::Refuses || !is_against_relay(rule)) continue;
    if (first_refused == nullptr || rule.stage < first_refused->stage) first_refused = &rule;
  }
  if (first_refused == nullptr) return;
  report.relay.is_known = true;
  refuse(*first_refused, report.relay);
}

void ProblemList::locate(std::string_view text, std::vector<Problem>& problems) {
  size_t at = 0;
  size_t line_start = 0;
  uint32_t line = 1;
  for (Problem& problem : problems) {
    const size_t offset = std::min<size_t>(problem.offset_bytes, text.size());
    for (; (at = text.find('\n', at)) < offset; ++at) {
      ++line;
      line_start = at + 1;
    }
    at = std::max(line_start, std::min(at, offset));
    problem.line = line;
    problem.column =
        static_cast<uint32_t>(std::min<size_t>(offset - line_start, UINT32_MAX - 1)) + 1;
  }
}

void ProblemList::finish(std::string_view text, ValidationReport& report) && {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.offset_bytes < b.offset_bytes; });
  report.problems.reserve(entries_.size());
  for (Entry& entry : entries_) {
    const Rule& rule = *entry.rule;
    report.problems.push_back({severity(rule), rule.id, is_against_documents(rule),
                               is_against_relay(rule), std::move(entry.pointer), entry.offset_bytes,
                               1, 1, std::move(entry.message)});
  }
  locate(text, report.problems);
  judge(report);
  for (const Rule& rule : all_rules()) {
    if (counts_of(rule).unlisted == 0) continue;
    report.unlisted.push_back({rule.id, counts_of(rule).unlisted});
  }
}

}  // namespace sentry_prof::sentry
