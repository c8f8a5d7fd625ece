// What became of one FILE of `validate`.
#pragma once

#include "cli/profile_input.h"
#include "cli/validate_options.h"
#include "sentry_prof/result.h"

#include <optional>
#include <string>

namespace sentry_prof::cli {

struct JudgedFile {
  std::string name;  // as the user gave it
  ValidationReport report;
  // There was no text to judge: the file cannot be read, or its compressed data is damaged. Then
  // the report says nothing.
  std::optional<Error> error;

  bool is_valid() const { return !error && report.valid; }
};

// Any kind of file, any content.
JudgedFile judge_file(const std::string& name, const ValidateCommandOptions& options);

// What was read already. The text stays the caller's.
JudgedFile judge_input(const std::string& name, const Result<ProfileInput>& input,
                       const ValidateCommandOptions& options);

}  // namespace sentry_prof::cli
