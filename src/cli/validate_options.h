// What `sentry-prof validate` was asked to do.
#pragma once

#include "cli/profile_input.h"
#include "sentry_prof/validate.h"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sentry_prof::cli {

enum class ReportFormat { Text, Json };

enum class Against { Both, Documents, Relay };

struct ValidateCommandOptions {
  std::vector<std::string> files;  // "-": standard input
  Against against = Against::Both;
  ReportFormat format = ReportFormat::Text;
  std::string explain;  // a rule, a reason of the server's, or "all"
  bool no_size_limit = false;
  bool fix = false;
  std::string output;  // of --fix; "-": standard output

  ValidateOptions judging() const {
    return {.against_documents = against != Against::Relay,
            .against_relay = against != Against::Documents,
            .has_size_limit = !no_size_limit};
  }
  InputLimit input_limit() const { return no_size_limit ? InputLimit::None : InputLimit::Server; }
};

void add_validate_options(CLI::App& validate, ValidateCommandOptions& options);

}  // namespace sentry_prof::cli
