#include "recorder/executable_name.h"

#include "base/path.h"
#include "base/utf8.h"

#include <cstddef>

#include <sys/stat.h>

namespace sentry_prof::recorder {

namespace {

// Of the 200 bytes that Sentry takes; "@" and 12 digits follow.
constexpr size_t kMaxName_bytes = 180;

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat first {
  }, second{};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace

std::string executable_name(const std::string& executable, const std::string& comm) {
  const std::string file_name(base_name(executable));
  if (comm.empty() || comm == "." || comm == ".." || comm.find('/') != comm.npos) return file_name;
  const std::string directory = executable.substr(0, executable.size() - file_name.size());
  return is_same_file(directory + comm, executable) ? comm : file_name;
}

std::string release_part(std::string name) {
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '/' || c == '\\' || byte < ' ' || byte == 0x7f) c = '_';
  }
  return shortened_utf8(printable_utf8(name), kMaxName_bytes);
}

}  // namespace sentry_prof::recorder
