// Where the profiles of one run go, and the summary of it: tried before it begins.
#pragma once

#include "cli/profile_options.h"
#include "sentry_prof/result.h"

#include <string>

namespace sentry_prof::cli {

// A directory that was made for the output, by check_profile_outputs(); one that stays empty is
// removed again when this goes. Must be there before the directory is.
class OutputDirectory {
 public:
  explicit OutputDirectory(const ProfileOptions& options);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

 private:
  std::string path_;
  bool is_new_ = false;
};

// Whether all that was asked for can be written, told before the run begins, not after an hour of
// it. `path` as resolve_output() gives it; empty if no chunk is written. Makes the directory of the
// output; warns of one that others may write to. InvalidArgument if one output would replace the
// other; Io if standard output is wanted and closed; else as os::make_directory() and
// os::check_writable().
Result<void> check_profile_outputs(const ProfileOptions& options, const std::string& path);

}  // namespace sentry_prof::cli
