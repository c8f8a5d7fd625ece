#include "sentry/rules_parts.h"

#include <vector>

namespace sentry_prof::sentry {

std::span<const Rule> meaning_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    for (const std::span<const Rule> part : {sample_rules(), stack_rules(), envelope_rules()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return rules;
}

}  // namespace sentry_prof::sentry
