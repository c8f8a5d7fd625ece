// From a file that the user names to what is sent of it: read, judged, put into an envelope.
#pragma once

#include "cli/exit_code.h"
#include "cli/sendable.h"
#include "cli/upload_options.h"
#include "sentry/transaction_link.h"
#include "sentry_prof/result.h"

#include <optional>
#include <string>
#include <string_view>

namespace sentry_prof::cli {

// Of --transaction-file and --link-transaction; at most one of them is not empty.
struct Transactions {
  std::string of_profile;
  std::string to_link;
};

// What became of a file; why, has been said. Nothing to send if `sendable` is empty.
struct Prepared {
  std::optional<Sendable> sendable;
  std::optional<sentry::ProfilerLink> link;  // with --link-transaction
  int exit_code = kDone;
};

Prepared prepare(const std::string& name, const UploadCommandOptions& options,
                 const Transactions& transactions);

// Judges an envelope that holds a transaction of the user's, and shows its errors: what else there
// is to say of a profile was said, and a transaction alone need not have one. 0: it may be sent.
int judge_envelope_of(const std::string& name, std::string_view envelope);

// The exit code where a file could not be read, or is not what it should be.
int exit_code_of(ErrorCode code);

// Says so of one huge file: the next one may be smaller. The exit code.
int complain_of_memory(const std::string& name);

}  // namespace sentry_prof::cli
