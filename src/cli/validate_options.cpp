#include "cli/validate_options.h"

#include "cli/choice_option.h"
#include "cli/validators.h"

#include <CLI/CLI.hpp>

namespace sentry_prof::cli {

namespace {

// What would be ignored is better refused.
void refuse_all_beside(const CLI::App& validate, const CLI::Option& explain) {
  for (const CLI::Option* option : validate.get_options()) {
    if (explain.count() == 0 || option == &explain || option->count() == 0) continue;
    throw CLI::ValidationError("--explain", "stands alone, leave " + option->get_name() + " out");
  }
}

}  // namespace

void add_validate_options(CLI::App& validate, ValidateCommandOptions& options) {
  validate
      .add_option("FILE", options.files,
                  "V1 profiles, V2 chunks and envelopes, also as .gz, .zst or .xz; '-' is "
                  "standard input")
      ->type_name(" ");
  add_choice<Against>(
      validate, "--against", options.against,
      {{"documents", Against::Documents}, {"relay", Against::Relay}, {"both", Against::Both}},
      "Sentry's published documents, what its server (Relay) enforces,\n"
      "or both for what 'upload' would send (default both)");
  add_choice<ReportFormat>(validate, "--format", options.format,
                           {{"text", ReportFormat::Text}, {"json", ReportFormat::Json}},
                           "json: one object a file, each on a line of its own");
  const CLI::Option* explain =
      validate
          .add_option("--explain", options.explain,
                      "Tell all about a rule, about a reason of the server's, or 'all'")
          ->check(not_empty())
          ->type_name("RULE");
  validate.parse_complete_callback([&validate, explain] { refuse_all_beside(validate, *explain); });
  validate.add_flag("--fix", options.fix,
                    "Repair one FILE as far as that needs no guessing, write it to OUT, say what\n"
                    "was changed, and judge the result");
  validate.add_option("-o,--output", options.output, "Where --fix writes; '-' is standard output")
      ->type_name("OUT");
  validate.add_flag("--no-size-limit", options.no_size_limit,
                    "Read and judge also what is larger than the server takes");
}

}  // namespace sentry_prof::cli
