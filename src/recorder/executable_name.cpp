#include "recorder/executable_name.h"

#include "base/path.h"
#include "base/utf8.h"

#include <cstddef>

namespace sentry_prof::recorder {

namespace {

// Of the 200 bytes that Sentry takes; "@" and 12 digits follow.
constexpr size_t kMaxName_bytes = 180;

}  // namespace

std::optional<std::string> executable_name(
    const std::string& executable, const std::string& comm,
    const std::function<std::optional<bool>(const std::string&)>& leads_there) {
  const std::string file_name(base_name(executable));
  if (comm.empty() || comm == "." || comm == ".." || comm.find('/') != comm.npos) return file_name;
  const std::string directory = executable.substr(0, executable.size() - file_name.size());
  const auto is_link = leads_there(directory + comm);
  if (!is_link) return std::nullopt;
  return *is_link ? comm : file_name;
}

std::string release_part(std::string name) {
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '/' || c == '\\' || byte < ' ' || byte == 0x7f) c = '_';
  }
  return shortened_utf8(printable_utf8(name), kMaxName_bytes);
}

}  // namespace sentry_prof::recorder
