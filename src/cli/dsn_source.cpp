#include "cli/dsn_source.h"

#include "base/ascii.h"
#include "cli/environment.h"
#include "os/file.h"
#include "os/input_file.h"
#include "os/paths.h"

#include <filesystem>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

// A few lines of text.
constexpr size_t kMaxFile_bytes = 64 * 1024;

// Ours, root's, or that of the user behind sudo.
bool is_trusted(const os::FileByteSource& file) {
  struct stat facts = {};
  if (::fstat(file.fd(), &facts) != 0) return false;
  const bool others_may_write = (facts.st_mode & S_IWOTH) != 0;
  return !others_may_write && os::is_trusted_owner(facts.st_uid);
}

struct Found {
  std::string text, source;
};

std::string_view unquoted(std::string_view text) {
  const bool is_quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                         text.front() == text.back();
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

// Nothing if it cannot be read, or is no few lines of text.
std::optional<std::string> text_of(const os::FileByteSource& file) {
  if (file.size_bytes() > kMaxFile_bytes) return {};
  std::string text(file.size_bytes(), '\0');
  if (!file.read_at(0, std::as_writable_bytes(std::span(text)))) return {};
  return text;
}

// Adds what is there but not believed to `passed_over`. What is judged is what is read: the name
// may be another file's a moment later.
std::optional<Found> look_into(const std::filesystem::path& directory, std::string& passed_over) {
  const std::string path = (directory / ".sentryclirc").string();
  const auto file = os::FileByteSource::open(path);
  if (!file || !is_trusted(**file)) {
    if (::access(path.c_str(), F_OK) == 0) {
      passed_over += fmt::format(
          ". {} was passed over: it cannot be read, belongs to another user, or may be written by "
          "everybody",
          path);
    }
    return {};
  }
  const auto text = text_of(**file);
  if (!text) return {};
  std::string dsn = dsn_in_sentryclirc(*text);
  if (dsn.empty()) return {};
  return Found{std::move(dsn), path};
}

std::optional<Found> look_for_sentryclirc(std::string& passed_over) {
  std::error_code is_unknown;
  std::filesystem::path directory = std::filesystem::current_path(is_unknown);
  while (!directory.empty()) {
    if (auto found = look_into(directory, passed_over)) return found;
    if (directory == directory.parent_path()) break;
    directory = directory.parent_path();
  }
  const std::string home = environment_variable("HOME");
  return home.empty() ? std::nullopt : look_into(home, passed_over);
}

Result<Found> find(const std::string& dsn, const std::string& dsn_file, const std::string& from) {
  if (!dsn.empty()) return Found{dsn, from + "--dsn"};
  if (!dsn_file.empty()) {
    const auto text = os::read_input(dsn_file, kMaxFile_bytes);
    if (!text)
      return fail(ErrorCode::InvalidArgument, from + "--dsn-file: " + text.error().message);
    return Found{std::string(trimmed(*text)), from + "--dsn-file " + dsn_file};
  }
  if (std::string value = environment_variable("SENTRY_DSN"); !value.empty()) {
    // A secret of Kubernetes made by `echo` ends in a newline.
    return Found{std::string(trimmed(value)), "SENTRY_DSN"};
  }
  std::string hint;
  if (auto found = look_for_sentryclirc(hint)) return std::move(*found);
  if (!environment_variable("SUDO_UID").empty()) {
    hint += ". sudo takes the variable away: sudo --preserve-env=SENTRY_DSN";
  }
  return fail(ErrorCode::NotFound,
              fmt::format("no DSN: give --dsn, --dsn-file or SENTRY_DSN (the project's settings, "
                          "\"Client Keys (DSN)\", show it), or put it into [auth] of "
                          ".sentryclirc, or into the command's own section of --config{}",
                          hint));
}

}  // namespace

std::string dsn_in_sentryclirc(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  bool is_in_auth = false;
  while (std::getline(lines, line)) {
    const std::string_view content = trimmed(line);
    if (content.starts_with('[')) is_in_auth = content == "[auth]";
    const size_t equals = content.find('=');
    if (!is_in_auth || equals == content.npos) continue;
    if (trimmed(content.substr(0, equals)) == "dsn") {
      return std::string(unquoted(trimmed(content.substr(equals + 1))));
    }
  }
  return "";
}

Result<FoundDsn> find_dsn(const std::string& dsn, const std::string& dsn_file,
                          const std::string& from) {
  const auto found = find(dsn, dsn_file, from);
  if (!found) return tl::unexpected(found.error());
  auto parsed = sentry::Dsn::parse(found->text);
  if (!parsed) return fail(parsed.error().code, found->source + ": " + parsed.error().message);
  return FoundDsn{std::move(*parsed), found->source};
}

}  // namespace sentry_prof::cli
