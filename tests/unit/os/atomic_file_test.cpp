#include "os/atomic_file.h"

#include "os/paths.h"
#include "os/temporary_name.h"
#include "support/catch2.h"
#include "support/skips.h"
#include "unit/os/scratch.h"

#include <chrono>
#include <filesystem>

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

using namespace sentry_prof;
using os::AtomicFile;
using test::read_text;
using test::ScratchDirectory;
using test::write_text;

namespace {

constexpr uid_t kNobody = 65534;

void become_nobody() {
  if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(99);
}

Result<void> write_whole(const std::string& path, const std::string& text) {
  auto file = AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  if (auto written = file->write(text); !written) return written;
  return file->commit();
}

}  // namespace

TEST_CASE("AtomicFile shows its contents only after commit") {
  const ScratchDirectory scratch;
  const std::string path = scratch / "out.json";
  write_text(path, "old");
  auto file = AtomicFile::create(path);
  REQUIRE(file);
  REQUIRE(file->write("new "));
  REQUIRE(file->write("text"));
  CHECK(read_text(path) == "old");
  REQUIRE(file->commit());
  CHECK(read_text(path) == "new text");
  CHECK(scratch.names() == std::vector<std::string>{"out.json"});
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
}

TEST_CASE("AtomicFile that is dropped or moved from leaves nothing") {
  const ScratchDirectory scratch;
  {
    auto file = AtomicFile::create(scratch / "out.json");
    REQUIRE(file);
    REQUIRE(file->write("half"));
    CHECK(scratch.names().size() == 1);
    const AtomicFile other = std::move(*file);
    CHECK(scratch.names().size() == 1);
    CHECK_FALSE(file->write("more"));
    CHECK_FALSE(file->commit());
  }
  CHECK(scratch.names().empty());
}

TEST_CASE("AtomicFile cannot be committed twice") {
  const ScratchDirectory scratch;
  auto file = AtomicFile::create(scratch / "out.json");
  REQUIRE(file);
  REQUIRE(file->commit());
  CHECK_FALSE(file->commit());
  CHECK(scratch.names() == std::vector<std::string>{"out.json"});
}

TEST_CASE("AtomicFile replaces a symbolic link and leaves alone what it points at") {
  const ScratchDirectory scratch;
  write_text(scratch / "precious", "keep me");
  std::filesystem::create_symlink("precious", scratch / "out.json");
  REQUIRE(write_whole(scratch / "out.json", "profile"));
  CHECK(read_text(scratch / "precious") == "keep me");
  CHECK(std::filesystem::symlink_status(scratch / "out.json").type() ==
        std::filesystem::file_type::regular);
  CHECK(read_text(scratch / "out.json") == "profile");
}

TEST_CASE("AtomicFile refuses directories, FIFOs, devices and streams") {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch / "directory");
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/null", scratch / "null");
  std::filesystem::create_symlink("/proc/self/fd/1", scratch / "stream");
  for (const char* name : {"directory", "fifo", "null", "stream"}) {
    INFO(name);
    const auto file = AtomicFile::create(scratch / name);
    REQUIRE_FALSE(file);
    CHECK(file.error().message.find(scratch / name) != std::string::npos);
  }
  CHECK(AtomicFile::create(scratch / "directory").error().code == ErrorCode::InvalidArgument);
  CHECK(AtomicFile::create(scratch / "fifo").error().code == ErrorCode::Unsupported);
  CHECK(AtomicFile::create("/dev/full").error().code == ErrorCode::Unsupported);
  CHECK(AtomicFile::create((scratch / "x") + "/").error().code == ErrorCode::InvalidArgument);
  CHECK(AtomicFile::create("").error().code == ErrorCode::InvalidArgument);
  CHECK(AtomicFile::create(scratch / "..").error().code == ErrorCode::InvalidArgument);
}

TEST_CASE("AtomicFile says which directory is missing and what to do") {
  const ScratchDirectory scratch;
  const auto file = AtomicFile::create(scratch / "no/out.json");
  REQUIRE_FALSE(file);
  CHECK(file.error().code == ErrorCode::NotFound);
  CHECK(file.error().message ==
        fmt::format("cannot write {0}/no/out.json: directory {0}/no: ENOENT: No such file or "
                    "directory. Create the directory first, or name another place.",
                    scratch.path().string()));
}

TEST_CASE("AtomicFile does not ask for a directory that is there but takes no files") {
  const auto file = AtomicFile::create("/proc/out.json");
  REQUIRE_FALSE(file);
  CHECK(
      file.error().message.ends_with("ENOENT: No such file or directory. No file can be made "
                                     "there: name another place."));
}

TEST_CASE("AtomicFile takes the longest name that a file can have") {
  const ScratchDirectory scratch;
  const std::string name(255, 'n');
  REQUIRE(write_whole(scratch / name, "text"));
  CHECK(scratch.names() == std::vector<std::string>{name});
  const auto longer = os::check_writable(scratch / (name + "n"));
  REQUIRE_FALSE(longer);
  CHECK(longer.error().message.ends_with("Choose a shorter name."));
}

TEST_CASE("AtomicFile finds out before writing that a file may not be replaced by anybody") {
  const ScratchDirectory scratch;
  const std::string path = scratch / "out.json";
  write_text(path, "old");
  ::chmod(path.c_str(), 0444);
  CHECK(os::check_writable(path));
  const os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  int flags = 0;
  const auto set_flags = [&](int now) { return ::ioctl(file.get(), FS_IOC_SETFLAGS, &now) == 0; };
  const bool can_be_immutable =
      ::ioctl(file.get(), FS_IOC_GETFLAGS, &flags) == 0 && set_flags(flags | FS_IMMUTABLE_FL);
  if (!can_be_immutable) {
    testing::note_optional_skip("needs root, and a file system with such flags");
    return;
  }
  const auto refused = os::check_writable(path);
  set_flags(flags);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::PermissionDenied);
}

TEST_CASE("AtomicFile tells a user that a directory is not writable") {
  const ScratchDirectory scratch;
  ::chmod(scratch.path().c_str(), 0555);
  const int status = test::status_of_child([&] {
    if (::geteuid() == 0) become_nobody();
    const auto file = AtomicFile::create(scratch / "out.json");
    return !file && file.error().code == ErrorCode::PermissionDenied ? 0 : 1;
  });
  ::chmod(scratch.path().c_str(), 0755);
  CHECK(status == 0);
  CHECK(scratch.names().empty());
}

TEST_CASE("AtomicFile writes into a directory that may not be listed") {
  const ScratchDirectory scratch;
  ::chmod(scratch.path().c_str(), 0333);
  const int status = test::status_of_child([&] {
    if (::geteuid() == 0) become_nobody();
    return write_whole(scratch / "out.json", "text") ? 0 : 1;
  });
  ::chmod(scratch.path().c_str(), 0755);
  CHECK(status == 0);
  CHECK(read_text(scratch / "out.json") == "text");
}

TEST_CASE("AtomicFile finds out before writing that a sticky directory protects a file") {
  if (::geteuid() != 0) {
    testing::note_skip("needs root to make a file of another user");
    return;
  }
  const ScratchDirectory scratch;
  ::chmod(scratch.path().c_str(), 01777);
  write_text(scratch / "out.json", "root's");
  const int status = test::status_of_child([&] {
    become_nobody();
    const auto check = os::check_writable(scratch / "out.json");
    const bool is_refused = !check && check.error().code == ErrorCode::PermissionDenied;
    return is_refused && os::check_writable(scratch / "other.json") ? 0 : 1;
  });
  CHECK(status == 0);
  CHECK(read_text(scratch / "out.json") == "root's");
}

TEST_CASE("AtomicFile at the limit of file sizes says how much was needed and leaves nothing") {
  const ScratchDirectory scratch;
  const std::string path = scratch / "out.json";
  write_text(path, "old");
  const int status = test::status_of_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto file = AtomicFile::create(path);
    if (!file) return 1;
    const auto written = file->write(std::string(10'000, 'x'));
    if (written || written.error().code != ErrorCode::Io) return 2;
    const std::string& message = written.error().message;
    if (message.find("10000 bytes needed, 4096 written") == std::string::npos) return 3;
    if (message.find(path) == std::string::npos) return 4;
    return file->commit() ? 5 : 0;
  });
  CHECK(status == 0);
  CHECK(read_text(path) == "old");
  CHECK(scratch.names() == std::vector<std::string>{"out.json"});
}

TEST_CASE("AtomicFile under sudo belongs to the user who called") {
  if (::geteuid() != 0) {
    testing::note_skip("needs root");
    return;
  }
  const ScratchDirectory scratch;
  const int status = test::status_of_child([&] {
    ::setenv("SUDO_UID", "1234", 1);
    ::setenv("SUDO_GID", "4321", 1);
    return write_whole(scratch / "out.json", "text") ? 0 : 1;
  });
  CHECK(status == 0);
  struct stat owner = {};
  REQUIRE(::stat((scratch / "out.json").c_str(), &owner) == 0);
  CHECK(owner.st_uid == 1234);
  CHECK(owner.st_gid == 4321);
}

TEST_CASE("AtomicFile removes what ended runs left, and nothing else") {
  const ScratchDirectory scratch;
  const std::string gone = std::to_string(test::pid_that_is_gone());
  const std::string stale = ".out.json." + gone + "-0123456789abcdef.sentry-prof-tmp";
  const std::string locked = ".out.json." + gone + "-00000000000000aa.sentry-prof-tmp";
  const std::vector<std::string> kept = {
      locked,                                                       // somebody holds it
      ".other.json." + gone + "-0123456789abcdef.sentry-prof-tmp",  // of another output
      ".out.json." + std::to_string(::getpid()) + "-0123456789abcdef.sentry-prof-tmp",  // runs
      ".out.json." + gone + "-0123.sentry-prof-tmp",  // not our pattern
      ".out.json.sentry-prof-tmp"};
  write_text(scratch / stale, "half");
  for (const std::string& name : kept) write_text(scratch / name, "half");
  const os::Fd lock(::open((scratch / locked).c_str(), O_RDONLY));
  REQUIRE(::flock(lock.get(), LOCK_EX) == 0);

  REQUIRE(write_whole(scratch / "out.json", "text"));
  CHECK_FALSE(std::filesystem::exists(scratch / stale));
  for (const std::string& name : kept) {
    INFO(name);
    CHECK(std::filesystem::exists(scratch / name));
  }
}

TEST_CASE(
    "A temporary that nobody has locked for a minute is a killed run's, whoever has its pid") {
  const ScratchDirectory scratch;  // in containers all have the same
  const std::string own = ".out.json." + std::to_string(::getpid()) + "-";
  const std::string stale = own + "0123456789abcdef.sentry-prof-tmp";
  const std::string locked = own + "00000000000000aa.sentry-prof-tmp";
  const auto before = std::filesystem::file_time_type::clock::now() - std::chrono::minutes(2);
  for (const std::string& name : {stale, locked}) {
    write_text(scratch / name, "half");
    std::filesystem::last_write_time(scratch / name, before);
  }
  const os::Fd lock(::open((scratch / locked).c_str(), O_RDONLY));
  REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
  REQUIRE(write_whole(scratch / "out.json", "text"));
  CHECK_FALSE(std::filesystem::exists(scratch / stale));
  CHECK(std::filesystem::exists(scratch / locked));
}

TEST_CASE("A run that was killed leaves a temporary that the next run removes") {
  const ScratchDirectory scratch;
  const int status = test::status_of_child([&] {
    auto file = AtomicFile::create(scratch / "out.json");
    if (file && file->write("half")) ::raise(SIGKILL);
    return 1;
  });
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(scratch.names().size() == 1);
  CHECK(scratch.names().front() != "out.json");
  REQUIRE(os::check_writable(scratch / "out.json"));
  CHECK(scratch.names().empty());
}

TEST_CASE("Names of temporaries tell their file and their owner") {
  const std::string name = os::make_temporary_name("out.json");
  const auto parsed = os::parse_temporary(name);
  REQUIRE(parsed);
  CHECK(parsed->name == "out.json");
  CHECK(parsed->owner == ::getpid());
  CHECK(os::make_temporary_name("out.json") != name);
}

TEST_CASE("No other name is a temporary's") {
  for (const char* name :
       {"out.json", ".out.json..sentry-prof-tmp", ".out.json.-5-0123456789abcdef.sentry-prof-tmp",
        ".out.json.0-0123456789abcdef.sentry-prof-tmp", "..7-0123456789abcdef.sentry-prof-tmp",
        ".7-0123456789abcdef.sentry-prof-tmp", ".out.json.7-0123456789abcde.sentry-prof-tmp",
        ".out.json.7-0123456789abcdef.tmp", "out.json.7-0123456789abcdef.sentry-prof-tmp",
        ".sentry-prof-tmp", ""}) {
    INFO(name);
    CHECK_FALSE(os::parse_temporary(name));
  }
}

TEST_CASE("A directory that others may write to is told, unless it is sticky") {
  const ScratchDirectory scratch;
  CHECK_FALSE(os::others_can_replace(scratch / "out.json"));
  ::chmod(scratch.path().c_str(), 0777);
  CHECK(os::others_can_replace(scratch / "out.json"));
  ::chmod(scratch.path().c_str(), 01777);
  CHECK_FALSE(os::others_can_replace(scratch / "out.json"));
}

TEST_CASE("A directory is made once, and not those above it") {
  const ScratchDirectory directory;
  const std::string wanted = directory / "profiles/";
  CHECK(os::make_directory(wanted));
  CHECK(std::filesystem::is_directory(wanted));
  CHECK(os::make_directory(wanted));
  const auto deeper = os::make_directory(directory / "no/profiles/");
  REQUIRE_FALSE(deeper);
  CHECK(deeper.error().code == ErrorCode::NotFound);
  CHECK(deeper.error().message.find("Create the directory first") != std::string::npos);
}

TEST_CASE("A file and its directory are known again however their paths are spelled") {
  const ScratchDirectory directory;
  const std::string file = directory / "out.json";
  const std::string other_spelling = directory / "./out.json";
  std::filesystem::create_directory(directory / "deeper");
  CHECK(os::are_in_same_directory(file, other_spelling));
  CHECK_FALSE(os::are_in_same_directory(file, directory / "deeper/out.json"));
  CHECK_FALSE(os::are_in_same_directory(directory / "no/a", directory / "no/b"));
  CHECK_FALSE(os::is_same_file(file, other_spelling));  // not there yet
  std::ofstream(file) << "{}";
  CHECK(os::is_same_file(file, other_spelling));
  CHECK_FALSE(os::is_same_file(file, directory / "deeper"));
}
