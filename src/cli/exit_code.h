// Exit codes that scripts rely on; the man page lists them.
#pragma once

namespace sentry_prof::cli {

enum ExitCode : int {
  kDone = 0,
  kAnswerIsNo = 1,  // nothing was recorded; a profile is not valid
  kWrongUsage = 2,
  kInputOutput = 7,
  // `record -- CMD` passes CMD's own status through; besides:
  kOwnFailure = 125,  // sentry-prof itself failed
  kNotExecutable = 126,
  kNotFound = 127,
  kSignalBase = 128,  // + the number of the signal that ended CMD
};

}  // namespace sentry_prof::cli
