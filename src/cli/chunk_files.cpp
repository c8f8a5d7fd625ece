#include "cli/chunk_files.h"

#include "base/path.h"
#include "base/utf8.h"
#include "cli/deciding_problem.h"
#include "os/atomic_file.h"
#include "os/errors.h"
#include "os/paths.h"
#include "sentry_prof/limits.h"
#include "sentry_prof/validate.h"

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

constexpr std::string_view kSuffix = ".json";
// Of a file's name, which has at most 255 bytes (NAME_MAX), pid, format and chunk number included.
constexpr size_t kMaxTargetName_bytes = 200;

// What `record` writes has passed what `validate` asks of everybody.
Result<void> judge_own(std::string_view json, uint32_t chunk_number) {
  const ValidationReport report = validate(json);
  if (report.valid) return {};
  const Problem* problem = deciding_problem(report);
  const std::string reason(report.relay.reason);
  return fail(ErrorCode::Malformed,
              fmt::format("chunk {} was not written, since {}: {} [{}]{}. Unless a --platform, "
                          "--release or --environment is the cause, this is a fault of "
                          "sentry-prof: please report it",
                          chunk_number,
                          report.relay.valid ? "Sentry's documents forbid it"
                                             : "Sentry would refuse it (" + reason + ")",
                          problem == nullptr ? "" : problem->message,
                          problem == nullptr ? "" : problem->rule,
                          problem == nullptr ? "" : " at " + problem->pointer));
}

}  // namespace

Result<void> write_to_stdout(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {  // a pipe that somebody made non-blocking
      pollfd room{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (count < 0) {
      return fail(ErrorCode::Io, "standard output: " + os::describe_errno(errno));
    }
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  auto file = os::AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  if (auto ok = file->write(bytes); !ok) return ok;
  return file->commit();
}

Result<void> write_output(const std::string& path, std::string_view bytes) {
  return path == "-" ? write_to_stdout(bytes) : write_file(path, bytes);
}

std::string chunk_path(const std::string& path, uint32_t chunk_number) {
  if (chunk_number <= 1) return path;
  const bool is_json = path.ends_with(kSuffix);
  const std::string stem = is_json ? path.substr(0, path.size() - kSuffix.size()) : path;
  return fmt::format("{}.{}{}", stem, chunk_number, is_json ? kSuffix : "");
}

bool is_name_of_files(const std::string& path) { return !path.empty() && path != "-"; }

bool is_chunk_path(const std::string& path, const std::string& other) {
  if (path == other) return true;
  const std::string first = chunk_path(path, 2);
  const size_t number = first.rfind('2');  // of FILE.2.json or FILE.2
  const std::string_view tail = std::string_view(first).substr(number + 1);
  if (other.size() < first.size() || !other.starts_with(first.substr(0, number)) ||
      !other.ends_with(tail)) {
    return false;
  }
  const std::string digits = other.substr(number, other.size() - number - tail.size());
  return digits.find_first_not_of("0123456789") == std::string::npos;
}

bool is_file_of_chunk(const std::string& path, const std::string& other) {
  return is_name_of_files(path) &&
         is_chunk_path(std::string(base_name(path)), std::string(base_name(other))) &&
         os::are_in_same_directory(path, other);
}

std::string resolve_output(const std::string& output, const std::string& target_name, int pid,
                           SentryFormat format) {
  std::error_code is_unknown;
  const bool is_directory = output.ends_with('/');
  const bool is_existing_directory =
      !is_directory && std::filesystem::is_directory(output, is_unknown);
  if (!output.empty() && !is_directory && !is_existing_directory) return output;
  const std::string name = target_name.size() <= kMaxTargetName_bytes
                               ? target_name
                               : shortened_utf8(printable_utf8(target_name), kMaxTargetName_bytes);
  return fmt::format("{}{}{}-{}.{}.json", output, is_existing_directory ? "/" : "", name, pid,
                     format == SentryFormat::V1 ? "v1" : "v2");
}

std::string directory_to_make(std::string_view output) {
  return output.ends_with('/') ? std::string(output) : "";
}

Result<std::string> chunk_json(const Profile& profile, SentryFormat format, uint32_t chunk_number) {
  std::string json = to_sentry_json(profile, format);
  if (json.size() > limits::kMaxItem_bytes) {
    return fail(ErrorCode::LimitExceeded,
                fmt::format("chunk {} would have {} bytes, Sentry takes at most {}; record with a "
                            "lower --frequency or shorter --chunk-seconds",
                            chunk_number, json.size(), limits::kMaxItem_bytes));
  }
  if (auto ok = judge_own(json, chunk_number); !ok) return tl::unexpected(ok.error());
  return json;
}

Result<void> ChunkFiles::write(const Profile& profile, uint32_t chunk_number) {
  const auto json = chunk_json(profile, format_, chunk_number);
  if (!json) return tl::unexpected(json.error());
  return write_json(*json);
}

Result<void> ChunkFiles::write_json(std::string_view json) {
  if (path_ == "-") {
    auto written = write_to_stdout(json);
    is_stdout_closed_ = !written;
    return written;
  }
  std::string path = chunk_path(path_, static_cast<uint32_t>(written_.size()) + 1);
  std::error_code is_unknown;
  const auto status = std::filesystem::symlink_status(path, is_unknown);  // a link is replaced, too
  const bool was_there =
      std::filesystem::is_regular_file(status) || std::filesystem::is_symlink(status);
  // A recording goes on for months, and others tidy up. It stays empty if the file cannot be made.
  if (!directory_.empty()) {
    if (auto ok = os::make_directory(directory_); !ok) return ok;
  }
  if (auto ok = write_file(path, json); !ok) return ok;
  if (was_there) replacing_.push_back(path);
  written_.push_back(std::move(path));
  return {};
}

std::vector<std::string> ChunkFiles::left_by_earlier_run() const {
  std::vector<std::string> left;
  for (auto number = static_cast<uint32_t>(written_.size()) + 1; is_name_of_files(path_);
       ++number) {
    std::string next = chunk_path(path_, number);
    if (::access(next.c_str(), F_OK) != 0) break;
    left.push_back(std::move(next));
  }
  return left;
}

}  // namespace sentry_prof::cli
