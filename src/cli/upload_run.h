// One run of `sentry-prof upload`: file after file, a transaction behind them, what waits in the
// spool; each is told, and the worst is the exit code.
#pragma once

#include "cli/exit_code.h"
#include "cli/prepared_upload.h"
#include "cli/sendable.h"
#include "cli/sender.h"
#include "cli/upload_options.h"
#include "os/signals.h"
#include "sentry/transaction_link.h"
#include "sentry_prof/result.h"
#include "upload/sending_round.h"
#include "upload/spool_sender.h"
#include "upload/uploader.h"

#include <map>
#include <optional>
#include <string>

namespace sentry_prof::cli {

class UploadRun {
 public:
  // All but the transactions must outlive it.
  UploadRun(const UploadCommandOptions& options, Sender& sender, const os::SignalSet& signals,
            Transactions transactions);
  UploadRun(const UploadRun&) = delete;
  UploadRun& operator=(const UploadRun&) = delete;

  // The exit code.
  int run();

 private:
  void send_file(const std::string& name);
  // Behind the chunks: one transaction, linked to the last of them.
  void send_transaction();
  // The exit code is that of what came before.
  void tell_unlinked(const char* why) const;
  // Whether it was accepted, or is in the spool.
  bool send(const std::string& name, Sendable sendable);
  bool try_to_send(const std::string& name, Sendable sendable);
  // What a full or failing disk does not take may go to the server all the same.
  bool send_past_spool(const std::string& name, const Sendable& packed, const Error& error);
  bool send_now(const std::string& name, const Sendable& packed);
  std::string name_of(const upload::SpooledEnvelope& envelope) const;
  // An envelope is held whole.
  Result<upload::SpoolRun> send_all_spooled(const upload::GiveUp& give_up);
  void send_spool();
  void tell_losses();
  void tell(const std::string& what, const upload::Outcome& outcome);
  // What is over before anybody wonders needs no word.
  void tell_wait(const upload::Wait& wait) const;
  void say(const std::string& text) const;
  void note_error(const Error& error);
  void note(int exit_code);

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

}  // namespace sentry_prof::cli
