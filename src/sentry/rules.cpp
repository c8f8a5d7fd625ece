#include "sentry/rules.h"

#include "sentry/rules_parts.h"

#include <unordered_map>
#include <vector>

namespace sentry_prof::sentry {

namespace {

void append(std::vector<Rule>& rules, std::span<const Rule> part) {
  rules.insert(rules.end(), part.begin(), part.end());
}

}  // namespace

std::span<const Rule> field_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    for (const std::span<const Rule> part :
         {json_rules(), document_rules(), measurement_rules(), v1_rules(), v1_transaction_rules(),
          v2_rules(), image_rules()}) {
      append(all, part);
    }
    return all;
  }();
  return rules;
}

std::span<const Rule> all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    append(all, field_rules());
    append(all, meaning_rules());
    return all;
  }();
  return rules;
}

const Rule* find_rule(std::string_view id) {
  static const std::unordered_map<std::string_view, const Rule*> by_id = [] {
    std::unordered_map<std::string_view, const Rule*> map;
    for (const Rule& rule : all_rules()) map.emplace(rule.id, &rule);
    return map;
  }();
  const auto found = by_id.find(id);
  return found == by_id.end() ? nullptr : found->second;
}

}  // namespace sentry_prof::sentry
