// Running `sentry-prof record` and reading back all that it wrote.
#pragma once

#include "loaded_profile.h"
#include "process.h"
#include "summary.h"
#include "temporary_directory.h"

#include <optional>
#include <string>
#include <vector>

namespace sentry_prof::testing {

// The program under test (SENTRY_PROF in the environment).
std::string sentry_prof_path();

struct RecordArguments {
  std::vector<std::string> options;  // of `record`, besides -o and --summary
  std::vector<std::string> command;  // to launch; or else the processes to attach to
  std::vector<pid_t> pids;
  std::string format = "v2";
  std::string frequency_hz = "997";
  std::map<std::string, std::string> environment;
};

// `sentry-prof record ... -o DIRECTORY/out.json --summary DIRECTORY/summary.json`
Command record_command(const TemporaryDirectory& directory, const RecordArguments& arguments);

struct Recording {
  CommandResult result;
  std::optional<Summary> figures;       // if a summary was written
  std::vector<LoadedProfile> profiles;  // one a file

  const Summary& summary() const { return figures.value(); }
  const LoadedProfile& profile() const { return profiles.at(0); }
};

// Runs it to its end, and reads and checks what it wrote (check_written()).
Recording record(const TemporaryDirectory& directory, const RecordArguments& arguments);

// Until the recorder, process `pid`, has opened an event; false if that takes too long.
bool wait_until_sampling(pid_t pid);

// Reads what a run that has ended left in the directory. Asserts that
// - every file obeys the tables of Sentry's rules and of the documents (sentry_checker),
// - timestamps never go back, images do not overlap, every address lies in at most one image,
// - what the summary counts is what the files hold, and the law of counting holds,
// - no temporary was left behind.
Recording read_recording(const TemporaryDirectory& directory, CommandResult result);

// `record` of a program that is expected to work: status 0 and at least one file.
Recording record_well(const TemporaryDirectory& directory, const RecordArguments& arguments);

}  // namespace sentry_prof::testing
