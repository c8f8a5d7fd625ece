#include "target/file_helpers.h"

#include "base/path.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace sentry_prof::target {

namespace {

// So that the numbers of one request to close have room in a question.
constexpr size_t kMostClosed = os::HelperProcesses::kMaxQuestion_bytes / 2 / sizeof(uint64_t);

// To find one that may be asked for, of each helper: whether it may takes a system call.
constexpr int kMostSubjectsTried = 4;

// The file system that a question is about. Map records with build ids do not tell it: then a
// process's files of one directory are taken to lie on one. Of what else is asked for, each kind of
// question counts as one for each process: whose memory is slow to read has no part in its files.
uint64_t subject_of(const FileRequest& request) {
  const MappingFacts& mapping = request.mapping;
  const bool is_of_file = request.kind == FileRequestKind::Open ||
                          request.kind == FileRequestKind::OpenByPath ||
                          request.kind == FileRequestKind::NameIsLiteral;
  const uint64_t device = uint64_t{mapping.device_major} << 32 | mapping.device_minor;
  if (is_of_file && device != 0) return device;
  const std::string_view path = is_of_file ? std::string_view(mapping.path) : "";
  const std::string_view directory = path.substr(0, path.size() - base_name(path).size());
  constexpr uint64_t kIsNoDevice = uint64_t{1} << 63;
  const uint64_t who = uint64_t{mapping.pid} << 8 | static_cast<uint8_t>(request.kind);
  return kIsNoDevice | (std::hash<std::string_view>()(directory) ^ std::hash<uint64_t>()(who) << 1);
}

bool opens_file(FileRequestKind kind) {
  return kind == FileRequestKind::Open || kind == FileRequestKind::OpenByPath ||
         kind == FileRequestKind::OpenMapped || kind == FileRequestKind::OpenJitMap;
}

std::optional<FileReply> reply_in(const os::HelperProcesses::Answer& answer) {
  return from_message<FileReply>(std::as_bytes(std::span(answer.bytes)));
}

}  // namespace

Result<std::shared_ptr<FileHelpers>> FileHelpers::start(
    os::HelperProcesses::GiveAnswer give_answer) {
  auto processes = os::HelperProcesses::start("sentry-prof-fs", std::move(give_answer));
  if (!processes) return tl::unexpected(std::move(processes.error()));
  return std::shared_ptr<FileHelpers>(new FileHelpers(std::move(*processes)));
}

std::optional<FileHelpers::Replied> FileHelpers::ask_any(FileRequest request) {
  close_owed();
  Place place{.subject = subject_of(request)};
  if (opens_file(request.kind)) {
    const std::lock_guard lock(mutex_);
    request.file = place.file = next_file_++;
  }
  const bool may_keep_file = opens_file(request.kind);
  const std::string question = to_message(std::move(request));
  std::optional<size_t> late;
  auto answered = processes_->ask_any(std::as_bytes(std::span(question)), place.subject, &late);
  if (!answered) {
    ++given_up_;
    if (may_keep_file && late) owe({{*late, place.file, place.subject}});
    return std::nullopt;
  }
  place.helper = answered->helper;
  auto reply = reply_in(answered->answer);
  if (!reply) {
    ++given_up_;
    if (may_keep_file) owe({place});
    return std::nullopt;
  }
  return Replied{std::move(*reply), std::move(answered->answer.fd), place};
}

std::optional<FileReply> FileHelpers::ask(const Place& place, FileRequest request) {
  close_owed();
  request.file = place.file;
  const std::string question = to_message(std::move(request));
  const auto answer =
      processes_->ask(place.helper, std::as_bytes(std::span(question)), place.subject);
  if (answer) return reply_in(*answer);
  ++given_up_;
  return std::nullopt;
}

void FileHelpers::close(const Place& place) {
  if (processes_->is_starter() || !ask_to_close({place})) owe({place});
}

void FileHelpers::close_unneeded() {
  while (close_owed()) {
  }
}

bool FileHelpers::close_owed() {
  if (processes_->is_starter()) return false;
  const std::vector<Place> places = take_owed();
  if (places.empty()) return false;
  const bool are_closed = ask_to_close(places);
  // To close a file again does no harm: no other one has its number.
  if (!are_closed) owe(places);
  return are_closed;
}

// Of one subject, so that nobody is late because of another one's file system. Those that may not
// be asked for now are put behind the others.
std::vector<FileHelpers::Place> FileHelpers::take_owed() {
  const std::lock_guard lock(mutex_);
  for (size_t helper = 0; helper < owed_.size(); ++helper) {
    std::vector<Place>& owed = owed_[helper];
    if (!owed.empty() && processes_->has_ended(helper)) owed.clear();
    for (int tries = 0; tries < kMostSubjectsTried && !owed.empty(); ++tries) {
      const uint64_t subject = owed.front().subject;
      const auto of_subject = std::stable_partition(
          owed.begin(), owed.end(), [&](const Place& place) { return place.subject != subject; });
      if (!processes_->is_askable(helper, subject)) continue;
      const auto count =
          std::min<size_t>(static_cast<size_t>(owed.end() - of_subject), kMostClosed);
      std::vector<Place> taken(owed.end() - static_cast<std::ptrdiff_t>(count), owed.end());
      owed.resize(owed.size() - count);
      return taken;
    }
  }
  return {};
}

void FileHelpers::owe(const std::vector<Place>& places) {
  const std::lock_guard lock(mutex_);
  std::vector<Place>& owed = owed_[places.front().helper];
  owed.insert(owed.end(), places.begin(), places.end());
}

bool FileHelpers::ask_to_close(const std::vector<Place>& places) {
  FileRequest request{.kind = FileRequestKind::Close};
  for (const Place& place : places) request.closed_files.push_back(place.file);
  const std::string question = to_message(std::move(request));
  const Place& first = places.front();
  return processes_->ask(first.helper, std::as_bytes(std::span(question)), first.subject)
      .has_value();
}

}  // namespace sentry_prof::target
