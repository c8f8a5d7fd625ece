// Words that text and JSON have in common.
#pragma once

#include "sentry_prof/validate.h"

#include <string_view>

namespace sentry_prof::cli {

constexpr std::string_view severity_word(Severity severity) {
  switch (severity) {
    case Severity::Error:
      return "error";
    case Severity::Warning:
      return "warning";
    case Severity::Note:
      break;
  }
  return "note";
}

}  // namespace sentry_prof::cli
