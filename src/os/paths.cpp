#include "os/paths.h"

#include "os/privileges.h"

#include <algorithm>
#include <cstddef>

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sentry_prof::os {

Result<SplitPath> split_path(const std::string& path) {
  const size_t slash = path.rfind('/');
  SplitPath result;
  result.directory = slash == path.npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
  result.name = slash == path.npos ? path : path.substr(slash + 1);
  if (result.name.empty() || result.name == "." || result.name == "..") {
    return fail(
        ErrorCode::InvalidArgument,
        fmt::format("cannot write \"{}\": that names a directory. Name a file in it.", path));
  }
  return result;
}

bool is_trusted_owner(unsigned uid) {
  const unsigned self = ::geteuid();
  return uid == self || uid == 0 || (self == 0 && sudo_uid() == uid);
}

bool are_in_same_directory(const std::string& path, const std::string& other) {
  const auto first = split_path(path);
  const auto second = split_path(other);
  return first && second && is_same_file(first->directory, second->directory);
}

bool is_same_file(const std::string& path, const std::string& other) {
  struct stat first = {};
  struct stat second = {};
  return ::stat(path.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool others_can_replace(const std::string& path) {
  const auto target = split_path(path);
  struct stat directory = {};
  if (!target || ::stat(target->directory.c_str(), &directory) != 0) return false;
  return (directory.st_mode & S_IWOTH) != 0 && (directory.st_mode & S_ISVTX) == 0;
}

}  // namespace sentry_prof::os
