// What became of one FILE of `validate`.
#pragma once

#include "cli/profile_input.h"
#include "cli/validate_options.h"
#include "sentry_prof/repair.h"
#include "sentry_prof/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::cli {

struct JudgedFile {
  std::string name;  // as the user gave it
  ValidationReport report;
  // There was no text to judge: the file cannot be read, or its compressed data is damaged. Then
  // the report says nothing.
  std::optional<Error> error;
  // Of --fix: what was done to make this file of another; nothing if it was not made so.
  std::optional<std::vector<RepairChange>> fixes = {};

  bool is_valid() const { return !error && report.valid; }
};

// Any kind of file, any content.
JudgedFile judge_file(const std::string& name, const ValidateCommandOptions& options);

// How `validate` judges what is larger than the server takes.
inline constexpr std::string_view kNoSizeLimitHint = " (--no-size-limit judges it all the same)";

// What was read of the file of that name. `too_large_hint`: said behind that it is larger than the
// server takes; options differ from command to command.
JudgedFile judge_input(const std::string& name, const Result<ProfileInput>& input,
                       const ValidateCommandOptions& options, std::string_view too_large_hint);

// 0, 1 or 7.
int exit_code_of(const JudgedFile& file);

}  // namespace sentry_prof::cli
