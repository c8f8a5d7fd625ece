#include "cli/upload_command.h"

#include "cli/chunk_files.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/prepared_upload.h"
#include "cli/sender.h"
#include "cli/upload_run.h"
#include "os/errors.h"
#include "os/input_file.h"
#include "os/paths.h"
#include "os/signals.h"
#include "sentry_prof/limits.h"

#include <cerrno>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

int write_envelope(const std::string& path, std::string_view envelope) {
  const auto written = write_output(path, envelope);
  if (written) return kDone;
  complain(written.error().message);
  return kInputOutput;
}

int dry_run(const UploadCommandOptions& options, const Transactions& transactions) {
  const std::string& input = options.files.front();
  if (input != "-" && options.output != "-" && os::is_same_file(input, options.output)) {
    complain(input + " is the name of the output, too");
    return kWrongUsage;
  }
  const Prepared prepared = prepare(input, options, transactions);
  return prepared.sendable ? write_envelope(options.output, prepared.sendable->body)
                           : prepared.exit_code;
}

// One to keep files in is made; one to send from must be there, or its name is wrong.
Result<void> open_spool(const UploadCommandOptions& options, Sender& sender) {
  const std::string& path = options.sending.spool;
  if (path.empty()) return {};
  if (options.files.empty() && ::access(path.c_str(), F_OK) != 0) {
    return fail(ErrorCode::NotFound,
                fmt::format("{}: {}. Without FILE what waits in a spool is sent: name the "
                            "directory that an earlier run kept it in",
                            path, os::describe_errno(errno)));
  }
  return sender.open_spool(path);
}

int send_all(const UploadCommandOptions& options, Transactions transactions) {
  const auto signals = os::SignalSet::install();
  if (!signals) {
    complain(signals.error().message);
    return kInputOutput;
  }
  const auto sender = Sender::create(options.sending, *signals, signals->fd());
  if (!sender) {
    complain(sender.error().message);
    const ErrorCode code = sender.error().code;
    return code == ErrorCode::InvalidArgument || code == ErrorCode::NotFound ? kWrongUsage
                                                                             : kInputOutput;
  }
  if (auto ok = open_spool(options, **sender); !ok) {
    complain(ok.error().message);
    return kInputOutput;
  }
  const int exit_code = UploadRun(options, **sender, *signals, std::move(transactions)).run();
  if (const auto taken = signals->take()) os::die_by_signal(taken->number);
  return exit_code;
}

// "" where no file is given.
Result<std::string> read_transaction(const std::string& path) {
  if (path.empty()) return std::string();
  auto text = os::read_input(path, limits::kMaxTransaction_bytes);
  if (text && text->empty()) return fail(ErrorCode::Malformed, path + ": is empty");
  return text;
}

}  // namespace

int upload_command(UploadCommandOptions options) {
  if (auto ok = complete(options); !ok) {
    complain(ok.error().message + ". Try: sentry-prof upload --help");
    return kWrongUsage;
  }
  const auto of_profile = read_transaction(options.transaction_file);
  const auto to_link = read_transaction(options.link_transaction);
  for (const auto* text : {&of_profile, &to_link}) {
    if (*text) continue;
    complain(text->error().message);
    return exit_code_of(text->error().code);
  }
  Transactions transactions{*of_profile, *to_link};
  return options.is_dry_run ? dry_run(options, transactions)
                            : send_all(options, std::move(transactions));
}

}  // namespace sentry_prof::cli
