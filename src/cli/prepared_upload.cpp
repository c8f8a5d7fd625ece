#include "cli/prepared_upload.h"

#include "cli/exit_code.h"
#include "cli/judged_file.h"
#include "cli/message.h"
#include "cli/problem_text.h"
#include "cli/profile_input.h"

#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

Prepared refused(const std::string& message, int exit_code) {
  complain(message);
  return {{}, {}, exit_code};
}

void show(const JudgedFile& file, const ValidateCommandOptions& judging) {
  print(problem_text(file, judging.judging(), false));
  complain(file.name + " was not sent: it is not valid (--no-validate sends it all the same)");
}

// Shows why it must not be sent. 0: it may.
int judge(const std::string& name, const Result<ProfileInput>& input) {
  const ValidateCommandOptions judging;
  const JudgedFile file = judge_input(name, input, judging, "");
  if (file.is_valid()) return kDone;
  if (file.error) {
    complain(file.error->message);
    return exit_code_of(file.error->code);
  }
  show(file, judging);
  return input->too_large ? kTooLarge : kAnswerIsNo;
}

Prepared try_to_prepare(const std::string& name, const UploadCommandOptions& options,
                        const Transactions& transactions) {
  auto input =
      read_profile_input(name, options.no_validate ? InputLimit::Envelope : InputLimit::Server);
  if (!options.no_validate) {
    if (const int code = judge(name, input); code != kDone) return {{}, {}, code};
  } else if (!input) {
    return refused(input.error().message, exit_code_of(input.error().code));
  } else if (input->too_large) {
    return refused(
        fmt::format("{}: is larger than {} MiB, the most that Sentry takes at once. Send "
                    "it in parts: record --chunk-seconds makes shorter ones",
                    name, input->too_large->limit_bytes >> 20),
        kTooLarge);
  }
  std::optional<sentry::ProfilerLink> profiler;
  if (!transactions.to_link.empty()) {
    auto found = sentry::read_profiler_link(input->text);
    if (!found) return refused(name + ": " + found.error().message, kAnswerIsNo);
    profiler = std::move(*found);
  }
  auto sendable = make_sendable(std::move(input->text),
                                {options.sending.keep_image_type, transactions.of_profile});
  if (!sendable) {
    return refused(name + ": " + sendable.error().message, exit_code_of(sendable.error().code));
  }
  if (!options.no_validate && !transactions.of_profile.empty()) {
    if (const int code = judge_envelope_of(name, sendable->body); code != kDone) {
      return {{}, {}, code};
    }
  }
  return {std::move(*sendable), std::move(profiler), kDone};
}

}  // namespace

int exit_code_of(ErrorCode code) {
  if (code == ErrorCode::Malformed) return kAnswerIsNo;
  return code == ErrorCode::InvalidArgument ? kWrongUsage : kInputOutput;
}

int judge_envelope_of(const std::string& name, std::string_view envelope) {
  const ValidateCommandOptions judging;
  JudgedFile file{"envelope of " + name, validate(envelope, judging.judging()), {}, {}};
  if (file.is_valid()) return kDone;
  std::erase_if(file.report.problems,
                [](const Problem& problem) { return problem.severity != Severity::Error; });
  show(file, judging);
  return kAnswerIsNo;
}

int complain_of_memory(const std::string& name) {
  complain(name + ": out of memory");
  return kInputOutput;
}

Prepared prepare(const std::string& name, const UploadCommandOptions& options,
                 const Transactions& transactions) {
  try {
    return try_to_prepare(name, options, transactions);
  } catch (const std::bad_alloc&) {
    return {{}, {}, complain_of_memory(name)};
  }
}

}  // namespace sentry_prof::cli
