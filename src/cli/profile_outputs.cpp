#include "cli/profile_outputs.h"

#include "base/path.h"
#include "cli/chunk_files.h"
#include "cli/message.h"
#include "os/atomic_file.h"
#include "os/paths.h"
#include "os/standard_streams.h"

#include <climits>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

constexpr uint32_t kManyChunks = 9999;  // a week of them

// Of a chunk that would find out when what was recorded before it is gone.
Result<void> check_length(const std::string& path) {
  if (base_name(path).size() <= NAME_MAX) return {};
  return fail(ErrorCode::InvalidArgument,
              fmt::format("cannot write {}: its name would be too long, if the recording comes to "
                          "so many files. Choose a shorter name.",
                          path));
}

// Of the chunks' files; makes the directory that is asked for.
Result<void> check_files(const ProfileOptions& options, const std::string& path) {
  if (const std::string directory = directory_to_make(options.output); !directory.empty()) {
    if (auto ok = os::make_directory(directory); !ok) return ok;
  }
  if (auto ok = os::check_writable(path); !ok) return ok;
  if (auto ok = check_length(chunk_path(path, kManyChunks)); !ok) return ok;
  if (os::others_can_replace(path)) {
    complain("warning: other users may write to the directory of " + path);
  }
  return {};
}

}  // namespace

OutputDirectory::OutputDirectory(const ProfileOptions& options)
    : path_(directory_to_make(options.output)) {
  is_new_ = !path_.empty() && ::access(path_.c_str(), F_OK) != 0;
}

OutputDirectory::~OutputDirectory() {
  if (is_new_) ::rmdir(path_.c_str());
}

Result<void> check_profile_outputs(const ProfileOptions& options, const std::string& path) {
  const bool uses_stdout = path == "-" || options.summary == "-";
  if (uses_stdout && !os::is_writable(STDOUT_FILENO)) {
    return fail(ErrorCode::Io, "standard output is closed, nothing can be written to it");
  }
  if (is_name_of_files(path)) {
    if (auto ok = check_files(options, path); !ok) return ok;
  }
  if (options.summary.empty() || options.summary == "-") return {};
  if (is_file_of_chunk(path, options.summary)) {
    return fail(ErrorCode::InvalidArgument,
                "--summary " + options.summary + " is the name of a chunk's file, too");
  }
  return os::check_writable(options.summary);
}

}  // namespace sentry_prof::cli
