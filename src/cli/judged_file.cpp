#include "cli/judged_file.h"

#include "cli/exit_code.h"
#include "sentry/problem_list.h"

#include <new>
#include <utility>

#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

constexpr uint64_t kMiB = 1024 * 1024;

std::string say_too_large(const TooLarge& too_large, bool has_server_limit, std::string_view hint) {
  const uint64_t limit_mib = too_large.limit_bytes / kMiB;
  const std::string most = has_server_limit
                               ? fmt::format("the server takes at most {} MiB of {}", limit_mib,
                                             too_large.is_envelope ? "an envelope" : "a profile")
                               : fmt::format("at most {} MiB can be judged", limit_mib);
  const std::string size = too_large.size_bytes ? fmt::format("has {} bytes", *too_large.size_bytes)
                                                : std::string("is larger");
  return fmt::format("the text {}; {}. It was not read{}", size, most,
                     has_server_limit ? hint : std::string_view());
}

// The verdict on what was not read. The documents know no sizes.
void judge_size(const TooLarge& too_large, const ValidateOptions& options, std::string_view hint,
                JudgedFile& file) {
  if (!options.against_relay || !options.has_size_limit) {
    file.error = Error{ErrorCode::LimitExceeded,
                       file.name + ": " + say_too_large(too_large, options.has_size_limit, hint)};
    return;
  }
  sentry::ProblemList problems(options);
  problems.add(too_large.is_envelope ? "envelope-size" : "profile-size", "", 0,
               say_too_large(too_large, true, hint));
  file.report.kind = too_large.is_envelope ? ValidatedKind::Envelope : ValidatedKind::Unknown;
  std::move(problems).finish("", file.report);
}

}  // namespace

JudgedFile judge_input(const std::string& name, const Result<ProfileInput>& input,
                       const ValidateCommandOptions& options, std::string_view too_large_hint) {
  JudgedFile file{name, {}, {}, {}};
  if (!input) {
    file.error = input.error();
  } else if (input->too_large) {
    judge_size(*input->too_large, options.judging(), too_large_hint, file);
  } else {
    file.report = validate(input->text, options.judging());
  }
  return file;
}

JudgedFile judge_file(const std::string& name, const ValidateCommandOptions& options) {
  try {
    return judge_input(name, read_profile_input(name, options.input_limit()), options,
                       kNoSizeLimitHint);
  } catch (const std::bad_alloc&) {  // of a huge file with --no-size-limit
    return {name, {}, Error{ErrorCode::Io, name + ": out of memory"}, {}};
  }
}

int exit_code_of(const JudgedFile& file) {
  if (file.is_valid()) return kDone;
  const bool says_something_of_the_content = !file.error ||
                                             file.error->code == ErrorCode::Malformed ||
                                             file.error->code == ErrorCode::LimitExceeded;
  return says_something_of_the_content ? kAnswerIsNo : kInputOutput;
}

}  // namespace sentry_prof::cli
