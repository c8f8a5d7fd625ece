#include "cli/rule_text.h"

#include "cli/report_words.h"
#include "cli/wrapped_text.h"
#include "sentry/rules.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

using sentry::DocumentsEffect;
using sentry::RelayEffect;
using sentry::Rule;

std::string_view documents_word(DocumentsEffect effect) {
  switch (effect) {
    case DocumentsEffect::Must:
      return "required. ";
    case DocumentsEffect::Should:
      return "recommended. ";
    case DocumentsEffect::Silent:
      break;
  }
  return "";
}

std::string server_words(const Rule& rule) {
  std::string words(rule.server);
  if (rule.relay == RelayEffect::Refuses) words += fmt::format("\nReason: {}", rule.reason);
  if (rule.is_mended_by_upload)
    words += "\n'sentry-prof upload' sends it in the form that the server takes.";
  return words;
}

std::string rule_text(const Rule& rule) {
  std::string text = fmt::format("{} ({})\n", rule.id, severity_word(rule.severity));
  const auto paragraph = [&text](std::string_view head, std::string_view body) {
    if (!body.empty()) text += wrapped(head, body);
  };
  paragraph("  ", rule.title);
  paragraph("  server:     ", server_words(rule));
  paragraph("  documents:  ",
            std::string(documents_word(rule.documents)) + std::string(rule.published));
  paragraph("  what to do: ", rule.mend);
  paragraph("  source:     ", rule.source);
  paragraph("  breaks it:  ", rule.breaks);
  paragraph("  keeps it:   ", rule.holds);
  return text;
}

// Levenshtein's distance: the fewest insertions, deletions and replacements between the two.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// To the id, or to the nearest of its words: "sampels" means "enough-samples".
size_t distance(std::string_view word, std::string_view id) {
  size_t nearest = edit_distance(word, id);
  for (size_t begin = 0; begin < id.size();) {
    const size_t end = std::min(id.find('-', begin), id.size());
    nearest = std::min(nearest, 1 + edit_distance(word, id.substr(begin, end - begin)));
    begin = end + 1;
  }
  return nearest;
}

std::string nearest_ids(std::string_view word) {
  constexpr size_t kShown = 3;
  constexpr size_t kMaxWord_bytes = 200;  // the distance takes time by the product of both lengths
  word = word.substr(0, kMaxWord_bytes);
  std::vector<std::pair<size_t, std::string_view>> ids;
  for (const Rule& rule : sentry::all_rules()) ids.emplace_back(distance(word, rule.id), rule.id);
  std::sort(ids.begin(), ids.end());
  std::string text;
  for (size_t i = 0; i < std::min(kShown, ids.size()); ++i) {
    text += (text.empty() ? "" : ", ") + std::string(ids[i].second);
  }
  return text;
}

std::string all_texts() {
  std::string text;
  for (const Rule& rule : sentry::all_rules()) {
    if (!text.empty()) text += '\n';
    text += rule_text(rule);
  }
  return text;
}

// Of the rules that the server refuses for this reason; empty if there are none.
std::string reason_text(std::string_view reason) {
  std::vector<const Rule*> rules;
  for (const Rule& rule : sentry::all_rules()) {
    if (!reason.empty() && rule.reason == reason) rules.push_back(&rule);
  }
  if (rules.empty()) return "";
  if (rules.size() == 1) return rule_text(*rules.front());
  std::string text = fmt::format("Rules for which the server says {}:\n", reason);
  for (const Rule* rule : rules) text += wrapped(fmt::format("  {:<32} ", rule->id), rule->title);
  return text;
}

}  // namespace

Result<std::string> explain(std::string_view what) {
  if (what == "all") return all_texts();
  if (const Rule* rule = sentry::find_rule(what)) return rule_text(*rule);
  if (std::string text = reason_text(what); !text.empty()) return text;
  return fail(ErrorCode::InvalidArgument,
              fmt::format("--explain: there is no rule '{}'. Nearest: {}; 'all' prints every rule",
                          what, nearest_ids(what)));
}

}  // namespace sentry_prof::cli
