// A directory that goes away with its owner.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace sentry_prof::testing {

class TemporaryDirectory {
 public:
  // Anybody may enter it: some tests run sentry-prof as another user.
  TemporaryDirectory() {
    std::string name =
        (std::filesystem::temp_directory_path() / "sentry-prof-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace sentry_prof::testing
