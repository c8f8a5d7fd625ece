#include "cli/upload_run.h"

#include "base/ids.h"
#include "base/time_units.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/upload_words.h"
#include "sentry/envelope_writer.h"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace sentry_prof::cli {

using upload::Outcome;
using upload::OutcomeKind;

UploadRun::UploadRun(const UploadCommandOptions& options, Sender& sender,
                     const os::SignalSet& signals, Transactions transactions)
    : options_(options),
      sender_(sender),
      signals_(signals),
      transactions_(std::move(transactions)) {
  sender_.uploader().on_wait([this](const upload::Wait& wait) { tell_wait(wait); });
}

int UploadRun::run() {
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

void UploadRun::send_file(const std::string& name) {
  signals_.let_next_one_kill();  // a terminal or a FIFO may never end
  Prepared prepared = prepare(name, options_, transactions_);
  signals_.hold_again();
  if (!prepared.sendable) return note(prepared.exit_code);
  const bool is_on_its_way = send(name, std::move(*prepared.sendable));
  if (is_on_its_way && prepared.link) link_ = std::move(prepared.link);
}

void UploadRun::send_transaction() {
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

void UploadRun::tell_unlinked(const char* why) const {
  complain(fmt::format("{} was not sent: {}", options_.link_transaction, why));
}

bool UploadRun::send(const std::string& name, Sendable sendable) {
  try {
    return try_to_send(name, std::move(sendable));
  } catch (const std::bad_alloc&) {
    note(complain_of_memory(name));
    return false;
  }
}

bool UploadRun::try_to_send(const std::string& name, Sendable sendable) {
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

bool UploadRun::send_past_spool(const std::string& name, const Sendable& packed,
                                const Error& error) {
  complain(error.message);
  if (is_over_) {
    complain(name + " was not sent");
  } else if (send_now(name, packed)) {
    return true;
  }
  note(kInputOutput);
  return false;
}

bool UploadRun::send_now(const std::string& name, const Sendable& packed) {
  const Outcome outcome = sender_.send(packed, round_.tries());
  tell(name, outcome);
  if (upload::is_final(outcome.kind)) {
    round_.note_verdict();
  } else if (!round_.goes_on_past(outcome)) {
    is_over_ = true;
  }
  return outcome.kind == OutcomeKind::Accepted;
}

std::string UploadRun::name_of(const upload::SpooledEnvelope& envelope) const {
  const auto file = files_in_spool_.find(envelope.name);
  return file == files_in_spool_.end() ? options_.sending.spool + "/" + envelope.name
                                       : file->second;
}

Result<upload::SpoolRun> UploadRun::send_all_spooled(const upload::GiveUp& give_up) {
  try {
    return upload::send_spooled(*sender_.spool(), sender_.uploader(), give_up);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::Io, options_.sending.spool +
                                   ": out of memory. Raise its limit (ulimit -v), the rest waits");
  }
}

void UploadRun::send_spool() {
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

void UploadRun::tell_losses() {
  const upload::SpoolLosses& losses = sender_.spool()->losses();
  for (const std::string& text : loss_sentences(losses, options_.sending.spool)) complain(text);
  if (losses.dropped() > 0) {
    note(upload::exit_code(OutcomeKind::NetworkFailed));
  }
  if (losses.set_aside > 0) note(kInputOutput);
}

void UploadRun::tell(const std::string& what, const Outcome& outcome) {
  const std::string text =
      (what.empty() ? "" : what + ": ") + upload::sentence(outcome, sender_.host());
  if (outcome.kind == OutcomeKind::Accepted) {
    say(text);
  } else {
    complain(text);
  }
  note(upload::exit_code(outcome.kind));
}

void UploadRun::tell_wait(const upload::Wait& wait) const {
  constexpr uint64_t kNoticed_ns = 3 * kNsPerSecond;
  if (wait.duration_ns < kNoticed_ns) return;
  say(fmt::format("{} {}: try {} of {} is in {} s (^C ends it)", sender_.host(),
                  wait.reason == upload::WaitReason::RateLimit ? "wants no more of this for now"
                                                               : "did not take it",
                  wait.next_try, wait.max_tries,
                  (wait.duration_ns + kNsPerSecond - 1) / kNsPerSecond));
}

void UploadRun::say(const std::string& text) const {
  if (!options_.is_quiet) complain(text);
}

void UploadRun::note_error(const Error& error) {
  complain(error.message);
  note(kInputOutput);
}

void UploadRun::note(int exit_code) { worst_ = std::max(worst_, exit_code); }

}  // namespace sentry_prof::cli
