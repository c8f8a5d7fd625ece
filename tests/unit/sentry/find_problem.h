// What a report says of one rule.
#pragma once

#include "sentry_prof/validate.h"

#include <string_view>

namespace sentry_prof::testing {

// The first; null if there is none. Lives as long as the report.
inline const Problem* find_problem(const ValidationReport& report, std::string_view rule) {
  for (const Problem& problem : report.problems) {
    if (problem.rule == rule) return &problem;
  }
  return nullptr;
}

}  // namespace sentry_prof::testing
