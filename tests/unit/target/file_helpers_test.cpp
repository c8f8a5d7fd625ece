// Files that helpers have open for us, and when they are closed.
#include "target/file_helpers.h"

#include "support/catch2.h"
#include "target/file_server.h"
#include "unit/os/scratch.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sentry_prof;
using target::FileHelpers;
using target::FileReply;
using target::FileRequest;
using target::FileRequestKind;
using target::FileServer;

namespace {

constexpr uint32_t kOwnDevice = 7;

uint64_t times_open_here(const std::string& path) {
  uint64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    count += std::filesystem::read_symlink(entry, error) == path ? 1 : 0;
  }
  return count;
}

// A server that tells how often it has `file` open (OpenByPath opens it), and its process; and that
// waits at `door`, a FIFO, before it tells of what it did, if that is marked by another path.
class LateServer {
 public:
  LateServer(std::string file, std::string door) : file_(std::move(file)), door_(std::move(door)) {}

  os::HelperProcesses::Answer answer(Bytes question) {
    const auto request = target::from_message<FileRequest>(question);
    if (request && request->kind == FileRequestKind::IsSameFile) {
      FileReply reply;
      reply.size_bytes = times_open_here(file_);
      reply.error.message = std::to_string(::getpid());
      return {target::to_message(std::move(reply)), os::Fd()};
    }
    auto answer = server_.answer(question);
    if (request && request->other_path == "late") ::close(::open(door_.c_str(), O_RDONLY));
    return answer;
  }

 private:
  FileServer server_{[](int /*fd*/) { return false; }};
  std::string file_;
  std::string door_;
};

class LateHelpers {
 public:
  LateHelpers() {
    test::write_text(file_, "text");
    REQUIRE(::mkfifo(door_.c_str(), 0600) == 0);
    auto started = FileHelpers::start(
        [server = std::make_shared<LateServer>(std::filesystem::canonical(file_), door_)](
            Bytes question) { return server->answer(question); });
    REQUIRE(started);
    helpers_ = std::move(*started);
  }
  ~LateHelpers() {
    // Who still waits there may go.
    const os::Fd door(::open(door_.c_str(), O_RDWR | O_NONBLOCK));
    helpers_.reset();
  }

  std::optional<FileHelpers::Replied> open_file(const std::string& other_path = "",
                                                FileRequestKind kind = FileRequestKind::OpenByPath,
                                                uint32_t device = kOwnDevice) {
    FileRequest request{.kind = kind, .other_path = other_path};
    request.mapping.pid = static_cast<uint32_t>(::getpid());
    request.mapping.path = file_;
    request.mapping.device_major = device;
    return helpers_->ask_any(std::move(request));
  }
  // Is late.
  void read(const FileHelpers::Place& place) {
    FileRequest request{.kind = FileRequestKind::Read, .other_path = "late"};
    CHECK_FALSE(helpers_->ask(place, std::move(request)));
  }
  void close(const FileHelpers::Place& place) { helpers_->close(place); }
  void close_unneeded_in_other_thread() {
    std::thread([&] { helpers_->close_unneeded(); }).join();
  }
  void close_in_other_thread(const FileHelpers::Place& place) {
    std::thread([&] { helpers_->close(place); }).join();
  }

  // What the first helper that is not late says of itself. Asked by another thread, as only those
  // close what is owed.
  FileHelpers::Replied facts() {
    std::optional<FileHelpers::Replied> replied;
    std::thread([&] { replied = helpers_->ask_any({.kind = FileRequestKind::IsSameFile}); }).join();
    REQUIRE(replied);
    return std::move(*replied);
  }
  // Waits until the first helper stands at the door, and is not late any more.
  void open_door() {
    ::close(::open(door_.c_str(), O_WRONLY));
    for (int i = 0; i < 1000 && facts().place.helper != 0; ++i) ::usleep(5000);
    REQUIRE(facts().place.helper == 0);
  }
  uint64_t given_up() const { return helpers_->given_up(); }

 private:
  test::ScratchDirectory directory_;
  std::string file_ = directory_ / "file";
  std::string door_ = directory_ / "door";
  std::shared_ptr<FileHelpers> helpers_;
};

}  // namespace

TEST_CASE("A helper has a file open until it is closed") {
  LateHelpers helpers;
  const auto opened = helpers.open_file();
  REQUIRE(opened);
  REQUIRE(opened->reply.is_yes);
  CHECK(helpers.facts().reply.size_bytes == 1);
  helpers.close_in_other_thread(opened->place);
  CHECK(helpers.facts().reply.size_bytes == 0);
}

TEST_CASE("The starting thread leaves closing to others") {
  LateHelpers helpers;
  const auto opened = helpers.open_file();
  REQUIRE(opened);
  helpers.close(opened->place);
  CHECK(helpers.open_file("").has_value());      // nor closes it before what it asks itself
  CHECK(helpers.facts().reply.size_bytes == 1);  // the second one
}

TEST_CASE("All that the starting thread does not need any more is closed at once") {
  LateHelpers helpers;
  for (uint32_t device = 1; device <= 50; ++device) {
    const auto opened = helpers.open_file("", FileRequestKind::OpenByPath, device);
    REQUIRE(opened);
    helpers.close(opened->place);
  }
  REQUIRE(helpers.open_file("", FileRequestKind::OpenByPath, 51));
  helpers.close_unneeded_in_other_thread();
  CHECK(helpers.facts().reply.size_bytes == 1);
}

TEST_CASE("A file whose opening was told too late is closed by a later request") {
  LateHelpers helpers;
  CHECK_FALSE(helpers.open_file("late"));
  CHECK(helpers.given_up() == 1);
  helpers.open_door();
  CHECK(helpers.facts().reply.size_bytes == 0);
  CHECK(helpers.given_up() == 1);
}

TEST_CASE("A process whose memory is read too late has no part in its files") {
  LateHelpers helpers;
  CHECK_FALSE(helpers.open_file("late", FileRequestKind::OpenMapped));
  CHECK(helpers.open_file().has_value());
  CHECK_FALSE(helpers.open_file("", FileRequestKind::OpenMapped));
  helpers.open_door();
}

TEST_CASE("Files that a late helper could not be told to close are closed by a later request") {
  LateHelpers helpers;
  const auto first = helpers.open_file();
  const auto second = helpers.open_file();
  const auto third = helpers.open_file();
  REQUIRE(first);
  REQUIRE(second);
  REQUIRE(third);
  CHECK(first->place.file != second->place.file);
  helpers.read(first->place);
  helpers.close_in_other_thread(first->place);
  helpers.close(second->place);
  CHECK(helpers.given_up() == 1);  // what was read; to close loses nothing
  helpers.open_door();
  CHECK(helpers.facts().reply.size_bytes == 1);
  CHECK(helpers.given_up() == 1);
}

TEST_CASE("What a helper owed that was killed nobody else is asked for") {
  LateHelpers helpers;
  const std::string pid = helpers.facts().reply.error.message;
  const auto opened = helpers.open_file();
  REQUIRE(opened);
  helpers.read(opened->place);
  helpers.close(opened->place);
  CHECK(::kill(std::stoi(pid), SIGKILL) == 0);
  std::optional<FileHelpers::Replied> next;
  for (int i = 0; i < 1000 && !next; ++i) {
    ::usleep(5000);
    next = helpers.open_file();
  }
  REQUIRE(next);
  CHECK(next->place.helper == 1);
  const uint64_t given_up = helpers.given_up();
  CHECK(helpers.facts().reply.size_bytes == 1);
  CHECK(helpers.given_up() == given_up);
}

TEST_CASE("Two threads open and close files at once") {
  LateHelpers helpers;
  const auto open_and_close = [&helpers](size_t& opened) {
    for (size_t i = 0; i < 500; ++i) {
      const auto file = helpers.open_file();
      if (!file) continue;
      opened += file->reply.is_yes ? 1 : 0;
      helpers.close(file->place);
    }
  };
  size_t others = 0;
  size_t own = 0;
  std::thread other([&] { open_and_close(others); });
  open_and_close(own);
  other.join();
  CHECK(others == 500);
  CHECK(own == 500);
  const auto facts = helpers.facts();
  CHECK(facts.place.helper == 0);
  CHECK(facts.reply.size_bytes == 0);
}
