#include "cli/upload_command.h"

#include "base/ids.h"
#include "base/time_units.h"
#include "cli/chunk_files.h"
#include "cli/exit_code.h"
#include "cli/judged_file.h"
#include "cli/message.h"
#include "cli/problem_text.h"
#include "cli/profile_input.h"
#include "cli/sendable.h"
#include "cli/sender.h"
#include "cli/upload_words.h"
#include "os/errors.h"
#include "os/input_file.h"
#include "os/paths.h"
#include "os/signals.h"
#include "sentry/envelope_writer.h"
#include "sentry/transaction_link.h"
#include "sentry_prof/limits.h"
#include "upload/sending_round.h"
#include "upload/spool_sender.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

using upload::Outcome;
using upload::OutcomeKind;

// Of --transaction-file and --link-transaction; at most one of them is not empty.
struct Transactions {
  std::string of_profile;
  std::string to_link;
};

// What became of a file; nothing to send if `sendable` is empty.
struct Prepared {
  std::optional<Sendable> sendable;
  std::optional<sentry::ProfilerLink> link;  // with --link-transaction
  int exit_code = kDone;
};

Prepared refused(const std::string& message, int exit_code) {
  complain(message);
  return {{}, {}, exit_code};
}

int exit_code_of(ErrorCode code) {
  if (code == ErrorCode::Malformed) return kAnswerIsNo;
  return code == ErrorCode::InvalidArgument ? kWrongUsage : kInputOutput;
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

// The same of an envelope that holds a transaction of the user's. Only errors are shown: what else
// there is to say of a profile was said, and a transaction alone need not have one.
int judge_envelope_of(const std::string& name, std::string_view envelope) {
  const ValidateCommandOptions judging;
  JudgedFile file{"envelope of " + name, validate(envelope, judging.judging()), {}, {}};
  if (file.is_valid()) return kDone;
  std::erase_if(file.report.problems,
                [](const Problem& problem) { return problem.severity != Severity::Error; });
  show(file, judging);
  return kAnswerIsNo;
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

// Of one huge file: the next one may be smaller.
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

class UploadRun {
 public:
  UploadRun(const UploadCommandOptions& options, Sender& sender, const os::SignalSet& signals,
            Transactions transactions)
      : options_(options),
        sender_(sender),
        signals_(signals),
        transactions_(std::move(transactions)) {
    sender_.uploader().on_wait([this](const upload::Wait& wait) { tell_wait(wait); });
  }
  UploadRun(const UploadRun&) = delete;
  UploadRun& operator=(const UploadRun&) = delete;

  int run() {
    for (const std::string& name : options_.files) {
      if (is_over_ && !sender_.spool()) {
        complain(name + " was not sent");
      } else {
        send_file(name);
      }
    }
    send_transaction();
    if (sender_.spool()) send_spool();
    return worst_;
  }

 private:
  void send_file(const std::string& name) {
    signals_.let_next_one_kill();  // a terminal or a FIFO may never end
    Prepared prepared = prepare(name, options_, transactions_);
    signals_.hold_again();
    if (!prepared.sendable) return note(prepared.exit_code);
    const bool is_on_its_way = send(name, std::move(*prepared.sendable));
    if (is_on_its_way && prepared.link) link_ = std::move(prepared.link);
  }

  // Behind the chunks: one transaction, linked to the last of them.
  void send_transaction() {
    if (options_.link_transaction.empty()) return;
    if (!link_) return tell_unlinked("no chunk was accepted to link it to");
    if (is_over_ && !sender_.spool()) return tell_unlinked("sending ended before it");
    const auto linked =
        sentry::link_transaction(transactions_.to_link, *link_, random_uuid_v4().to_hex());
    auto envelope = linked ? sentry::transaction_envelope(*linked) : tl::unexpected(linked.error());
    if (!envelope) {
      complain(options_.link_transaction + ": " + envelope.error().message);
      return note(kAnswerIsNo);
    }
    if (!options_.no_validate) {
      const int code = judge_envelope_of(options_.link_transaction, *envelope);
      if (code != kDone) return note(code);
    }
    send(options_.link_transaction,
         {std::move(*envelope), upload::BodyEncoding::Identity, upload::Category::Transaction});
  }

  // The exit code is that of what came before.
  void tell_unlinked(const char* why) const {
    complain(fmt::format("{} was not sent: {}", options_.link_transaction, why));
  }

  // Whether it was accepted, or is in the spool.
  bool send(const std::string& name, Sendable sendable) {
    try {
      return try_to_send(name, std::move(sendable));
    } catch (const std::bad_alloc&) {
      note(complain_of_memory(name));
      return false;
    }
  }

  bool try_to_send(const std::string& name, Sendable sendable) {
    auto packed = pack(std::move(sendable), options_.sending.compression);
    if (!packed) {
      note_error(packed.error());
      return false;
    }
    if (!sender_.spool()) return send_now(name, *packed);
    const auto kept = sender_.spool()->keep(packed->body, packed->encoding, packed->categories);
    if (!kept) return send_past_spool(name, *packed, kept.error());
    files_in_spool_[*kept] = name;
    return true;
  }

  // What a full or failing disk does not take may go to the server all the same.
  bool send_past_spool(const std::string& name, const Sendable& packed, const Error& error) {
    complain(error.message);
    if (is_over_) {
      complain(name + " was not sent");
    } else if (send_now(name, packed)) {
      return true;
    }
    note(kInputOutput);
    return false;
  }

  bool send_now(const std::string& name, const Sendable& packed) {
    const Outcome outcome = sender_.send(packed, round_.tries());
    tell(name, outcome);
    if (upload::is_final(outcome.kind)) {
      round_.note_verdict();
    } else if (!round_.goes_on_past(outcome)) {
      is_over_ = true;
    }
    return outcome.kind == OutcomeKind::Accepted;
  }

  std::string name_of(const upload::SpooledEnvelope& envelope) const {
    const auto file = files_in_spool_.find(envelope.name);
    return file == files_in_spool_.end() ? options_.sending.spool + "/" + envelope.name
                                         : file->second;
  }

  // An envelope is held whole.
  Result<upload::SpoolRun> send_all_spooled(const upload::GiveUp& give_up) {
    try {
      return upload::send_spooled(*sender_.spool(), sender_.uploader(), give_up);
    } catch (const std::bad_alloc&) {
      return fail(
          ErrorCode::Io,
          options_.sending.spool + ": out of memory. Raise its limit (ulimit -v), the rest waits");
    }
  }

  void send_spool() {
    const auto give_up = [&](const upload::SpooledEnvelope& envelope, const Outcome& outcome) {
      tell(name_of(envelope) + " (no longer in the spool)", outcome);
    };
    if (options_.files.empty() && sender_.spool()->counts().ours == 0) {
      say(fmt::format("nothing waits in {}.", options_.sending.spool));
    }
    const auto run = send_all_spooled(give_up);
    if (!run) return note_error(run.error());
    if (run->accepted > 0) {
      say(fmt::format("{} of {}: accepted by {}.", run->accepted, options_.sending.spool,
                      sender_.host()));
    }
    if (run->error) note_error(*run->error);
    if (run->trouble) tell("", *run->trouble);
    tell_losses();
    const upload::SpoolCounts left = sender_.spool()->counts();
    if (left.ours > 0) {
      complain(
          fmt::format("{} left in {}; the next upload with this spool sends them, if no other "
                      "process does that now",
                      left.ours, options_.sending.spool));
      // In another process's hands, which may fail; else there is a better reason.
      if (left.own > 0 && !run->trouble) note(upload::exit_code(OutcomeKind::NetworkFailed));
    }
    if (left.for_others > 0) complain(others_sentence(left.for_others, options_.sending.spool));
  }

  void tell_losses() {
    const upload::SpoolLosses& losses = sender_.spool()->losses();
    for (const std::string& text : loss_sentences(losses, options_.sending.spool)) complain(text);
    if (losses.dropped() > 0) {
      note(upload::exit_code(OutcomeKind::NetworkFailed));
    }
    if (losses.set_aside > 0) note(kInputOutput);
  }

  void tell(const std::string& what, const Outcome& outcome) {
    const std::string text =
        (what.empty() ? "" : what + ": ") + upload::sentence(outcome, sender_.host());
    if (outcome.kind == OutcomeKind::Accepted) {
      say(text);
    } else {
      complain(text);
    }
    note(upload::exit_code(outcome.kind));
  }

  // What is over before anybody wonders needs no word.
  void tell_wait(const upload::Wait& wait) const {
    constexpr uint64_t kNoticed_ns = 3 * kNsPerSecond;
    if (wait.duration_ns < kNoticed_ns) return;
    say(fmt::format("{} {}: try {} of {} is in {} s (^C ends it)", sender_.host(),
                    wait.reason == upload::WaitReason::RateLimit ? "wants no more of this for now"
                                                                 : "did not take it",
                    wait.next_try, wait.max_tries,
                    (wait.duration_ns + kNsPerSecond - 1) / kNsPerSecond));
  }
  void say(const std::string& text) const {
    if (!options_.is_quiet) complain(text);
  }
  void note_error(const Error& error) {
    complain(error.message);
    note(kInputOutput);
  }
  void note(int exit_code) { worst_ = std::max(worst_, exit_code); }

  const UploadCommandOptions& options_;
  Sender& sender_;
  const os::SignalSet& signals_;
  Transactions transactions_;
  std::map<std::string, std::string> files_in_spool_;  // of this run, by their names there
  std::optional<sentry::ProfilerLink> link_;
  int worst_ = kDone;
  upload::SendingRound round_;
  bool is_over_ = false;  // no further envelope would fare better
};

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
