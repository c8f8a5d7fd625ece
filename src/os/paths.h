// What paths lead to, and who may change that.
#pragma once

#include "sentry_prof/result.h"

#include <string>

namespace sentry_prof::os {

struct SplitPath {
  std::string directory;  // "." if the path has none
  std::string name;
};

// InvalidArgument, for a file that is to be written: the path names a directory.
Result<SplitPath> split_path(const std::string& path);

// Whether what belongs to this user may be believed: ours, root's, under sudo SUDO_UID's.
bool is_trusted_owner(unsigned uid);

// Whether both files lie in one directory, however their paths are spelled. False if a directory
// cannot be looked at.
bool are_in_same_directory(const std::string& path, const std::string& other);

// Whether both paths lead to one file that is there, links followed.
bool is_same_file(const std::string& path, const std::string& other);

// Whether other users could replace a file at `path`: its directory is writable by them and has no
// sticky bit. Worth a warning; false if the directory cannot be looked at.
bool others_can_replace(const std::string& path);

}  // namespace sentry_prof::os
