// Maps of real processes, in the real /tmp: that is where compilers write them.
#include "target/jit_map.h"

#include "base/time_units.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc_text.h"
#include "support/catch2.h"
#include "support/skips.h"
#include "target/launch.h"
#include "unit/os/scratch.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sentry_prof;
using target::JitMap;
using target::JitMapFinder;

namespace {

namespace fs = std::filesystem;

class Sleeper {
 public:
  explicit Sleeper(std::vector<std::string> prefix = {}) {
    std::vector<std::string> command = std::move(prefix);
    command.insert(command.end(), {"sleep", "1000"});
    auto child = target::LaunchedChild::start(command);
    REQUIRE(child);
    REQUIRE(child->release() == 0);
    child_.emplace(std::move(*child));
    fs::remove(map_path());
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() {
    end();
    std::error_code ignored;
    fs::remove(map_path(), ignored);
  }

  void end() {
    if (!child_) return;
    ::kill(child_->pid(), SIGKILL);
    CHECK(child_->wait());
    child_.reset();
  }

  uint32_t pid() const { return static_cast<uint32_t>(child_->pid()); }
  std::string map_path() {
    if (child_) map_path_ = fmt::format("/tmp/perf-{}.map", child_->pid());
    return map_path_;
  }

 private:
  std::optional<target::LaunchedChild> child_;
  std::string map_path_;
};

Result<JitMap> find_with(JitMapFinder& finder, uint32_t pid, uint64_t program_begin_ns = 0) {
  auto file = finder.open(pid, program_begin_ns);
  if (!file) return tl::unexpected(file.error());
  return target::jit_map_of(std::move(*file));
}

Result<JitMap> find_jit_map(uint32_t pid, uint64_t program_begin_ns) {
  JitMapFinder finder;
  return find_with(finder, pid, program_begin_ns);
}

std::string text_of(const Result<JitMap>& map) {
  REQUIRE(map);
  const auto file = (*map)();
  REQUIRE(file);
  std::string text(file->size_bytes(), '\0');
  REQUIRE(file->read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

std::string refusal_of(const Result<JitMap>& map) {
  if (map) return "none";
  return map.error().code == ErrorCode::NotFound ? "not found" : map.error().message;
}

// Why the process's map is not used.
std::string refusal(const Sleeper& process, uint64_t program_begin_ns = 0) {
  return refusal_of(find_jit_map(process.pid(), program_begin_ns));
}

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::optional<uint32_t> only_child_of(uint32_t pid) {
  const auto children = os::read_small_file(fmt::format("/proc/{0}/task/{0}/children", pid));
  if (!children || children->empty()) return std::nullopt;
  return static_cast<uint32_t>(std::stoul(*children));
}

void set_age(const std::string& path, time_t seconds) {
  const timespec then{::time(nullptr) - seconds, 0};
  const timespec times[] = {then, then};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

bool runs_as(uint32_t pid, uid_t user_id) {
  const auto text = os::read_small_file(fmt::format("/proc/{}/status", pid));
  const auto status = text ? os::parse_status(*text) : std::nullopt;
  return status && status->user_ids[1] == user_id;
}

}  // namespace

TEST_CASE("A process's JIT map is found, grows, and can be read when the process has ended") {
  Sleeper process;
  CHECK(refusal(process) == "not found");
  test::write_text(process.map_path(), "1000 10 first\n");
  const auto map = find_jit_map(process.pid(), 0);
  CHECK(text_of(map) == "1000 10 first\n");
  std::ofstream(process.map_path(), std::ios::app) << "2000 10 second\n";
  process.end();
  fs::remove(process.map_path());
  CHECK(text_of(map) == "1000 10 first\n2000 10 second\n");
}

TEST_CASE("A JIT map that a process writes last is found if it was looked for before") {
  Sleeper process;
  const uint32_t pid = process.pid();
  const std::string path = process.map_path();
  JitMapFinder finder;
  SECTION("looked for") {
    CHECK(refusal_of(find_with(finder, pid)) == "not found");
    process.end();
    test::write_text(path, "1000 10 last\n");
    CHECK(text_of(find_with(finder, pid)) == "1000 10 last\n");
    CHECK(refusal_of(find_with(finder, pid)) == "not found");  // whoever has the pid by then
  }
  SECTION("not looked for") {
    process.end();
    test::write_text(path, "1000 10 last\n");
    CHECK(refusal_of(find_with(finder, pid)) == "not found");
  }
  SECTION("looked for as that of the program before its exec") {
    CHECK(refusal_of(find_with(finder, pid)) == "not found");
    process.end();
    test::write_text(path, "1000 10 last\n");
    CHECK(refusal_of(find_with(finder, pid, os::monotonic_ns())) == "not found");
  }
  SECTION("older than the program") {
    CHECK(refusal_of(find_with(finder, pid)) == "not found");
    process.end();
    test::write_text(path, "1000 10 old\n");
    set_age(path, 3600);
    CHECK(says(refusal_of(find_with(finder, pid)), "older than the program"));
  }
  SECTION("after those of many other processes") {
    CHECK(refusal_of(find_with(finder, pid)) == "not found");
    std::vector<std::unique_ptr<Sleeper>> others(JitMapFinder::kMaxPlaces);
    for (auto& other : others) {
      other = std::make_unique<Sleeper>();
      CHECK(refusal_of(find_with(finder, other->pid())) == "not found");
    }
    process.end();
    test::write_text(path, "1000 10 last\n");
    CHECK(refusal_of(find_with(finder, pid)) == "not found");
  }
}

TEST_CASE("A JIT map that is no regular file is not opened") {
  Sleeper process;
  const test::ScratchDirectory scratch;
  SECTION("link") {
    test::write_text(scratch / "secret", "1000 10 secret\n");
    fs::create_symlink(scratch / "secret", process.map_path());
    CHECK(says(refusal(process), fmt::format("/tmp/perf-{0}.map of process {0} is not used: it is "
                                             "a link",
                                             process.pid())));
  }
  SECTION("FIFO, which would block") {
    REQUIRE(::mkfifo(process.map_path().c_str(), 0600) == 0);
    CHECK(says(refusal(process), "no regular file"));
  }
  SECTION("directory") {
    fs::create_directory(process.map_path());
    CHECK(says(refusal(process), "no regular file"));
  }
}

TEST_CASE("A JIT map that is older than the program was another's") {
  Sleeper process;
  test::write_text(process.map_path(), "1000 10 old\n");
  SECTION("of a process with that pid") {
    set_age(process.map_path(), 3600);
    CHECK(says(refusal(process), "older than the program"));
  }
  SECTION("of what the process ran before its exec") {
    const uint64_t now_ns = os::monotonic_ns();
    CHECK(refusal(process, now_ns) == "none");
    CHECK(says(refusal(process, now_ns + 3 * kNsPerSecond), "older than the program"));
  }
}

TEST_CASE("A JIT map is looked for in the /tmp that the process sees, by the pid it knows") {
  if (::geteuid() != 0) {
    testing::note_skip("needs root for namespaces");
    return;
  }
  const std::string script =
      "mount -t tmpfs none /tmp || exit 1; echo '1000 10 inside' > /tmp/perf-1.map; exec sleep "
      "1000";
  Sleeper process({"unshare", "--mount", "--pid", "--kill-child", "--fork", "sh", "-c", script});
  std::optional<uint32_t> pid;
  Result<JitMap> map = fail(ErrorCode::NotFound, "");
  for (int attempt = 0; attempt < 500 && !map; ++attempt) {
    ::usleep(10'000);
    if ((pid = only_child_of(process.pid()))) map = find_jit_map(*pid, 0);
  }
  if (!map) {
    testing::note_skip("no mount and pid namespaces here");
    return;
  }
  CHECK(text_of(map) == "1000 10 inside\n");

  // The namespaces end with the process.
  const std::string tmp = fmt::format("/proc/{}/root/tmp", *pid);
  const os::Fd directory(::open(tmp.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::unlinkat(directory.get(), "perf-1.map", 0) == 0);
  JitMapFinder finder;
  CHECK(refusal_of(find_with(finder, *pid)) == "not found");
  process.end();
  for (int attempt = 0; attempt < 500 && ::kill(static_cast<pid_t>(*pid), 0) == 0; ++attempt) {
    ::usleep(10'000);
  }
  const os::Fd file(::openat(directory.get(), "perf-1.map", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::write(file.get(), "2000 10 last\n", 13) == 13);
  CHECK(text_of(find_with(finder, *pid)) == "2000 10 last\n");
}

TEST_CASE("A JIT map is believed if the process's user owns it, or root alone") {
  if (::geteuid() != 0) {
    testing::note_skip("needs root to give files to other users");
    return;
  }
  constexpr uid_t kNobody = 65534, kSomebody = 12345;
  Sleeper process({"setpriv", fmt::format("--reuid={}", kNobody), "--clear-groups"});
  for (int attempt = 0; attempt < 500 && !runs_as(process.pid(), kNobody); ++attempt) {
    ::usleep(10'000);
  }
  REQUIRE(runs_as(process.pid(), kNobody));
  test::write_text(process.map_path(), "1000 10 x\n");
  const auto is_believed_of = [&](uid_t user_id) {
    REQUIRE(::chown(process.map_path().c_str(), user_id, 0) == 0);
    return refusal(process) == "none";
  };
  CHECK(is_believed_of(kNobody));
  CHECK(is_believed_of(0));
  CHECK_FALSE(is_believed_of(kSomebody));

  const test::ScratchDirectory scratch;
  const std::string other_name = "/tmp/" + scratch.path().filename().string() + "-link";
  fs::create_hard_link(process.map_path(), other_name);
  CHECK_FALSE(is_believed_of(0));
  CHECK(is_believed_of(kNobody));
  fs::remove(other_name);

  // The process could not read it itself: nobody reads it for it.
  REQUIRE(::chmod(process.map_path().c_str(), 0600) == 0);
  CHECK_FALSE(is_believed_of(0));

  // Nor when it has ended.
  const uint32_t pid = process.pid();
  fs::remove(process.map_path());
  JitMapFinder finder;
  CHECK(refusal_of(find_with(finder, pid)) == "not found");
  process.end();
  test::write_text(process.map_path(), "1000 10 x\n");
  REQUIRE(::chmod(process.map_path().c_str(), 0600) == 0);
  const uid_t owner = GENERATE(as<uid_t>(), 0, 65534, 12345);
  REQUIRE(::chown(process.map_path().c_str(), owner, 0) == 0);
  CHECK((refusal_of(find_with(finder, pid)) == "none") == (owner == kNobody));
}

namespace {

uint64_t unix_seconds_ago_ns(uint64_t seconds) { return os::unix_ns() - seconds * kNsPerSecond; }

std::string refusal_of_recorded(const target::RecordedProcess& process) {
  const auto file = target::open_recorded_jit_map(process);
  if (file) return "none";
  return file.error().code == ErrorCode::NotFound ? "not found" : file.error().message;
}

}  // namespace

TEST_CASE("The JIT map of a process that was recorded before and has ended") {
  Sleeper sleeper;
  const uint32_t pid = sleeper.pid();
  const std::string path = sleeper.map_path();
  sleeper.end();
  target::RecordedProcess process{.pid = pid,
                                  .recording_begin_unix_ns = unix_seconds_ago_ns(100),
                                  .recording_end_unix_ns = os::unix_ns()};
  CHECK(refusal_of_recorded(process) == "not found");
  test::write_text(path, "1000 10 first\n");
  CHECK(refusal_of_recorded(process) == "none");
  SECTION("older than the recording, where nothing tells when the program began") {
    set_age(path, 200);
    CHECK(says(refusal_of_recorded(process), "older than the recording"));
    process.program_begin_unix_ns = unix_seconds_ago_ns(300);
    CHECK(refusal_of_recorded(process) == "none");
  }
  SECTION("older than the program") {
    set_age(path, 60);
    process.program_begin_unix_ns = unix_seconds_ago_ns(50);
    CHECK(says(refusal_of_recorded(process), "older than the program that ran"));
  }
  SECTION("made when the recording was over") {
    struct statx status = {};
    const bool has_birth = ::statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &status) == 0 &&
                           (status.stx_mask & STATX_BTIME) != 0;
    process.recording_end_unix_ns = unix_seconds_ago_ns(10);
    CHECK(says(refusal_of_recorded(process), "made after the recording") == has_birth);
  }
  SECTION("a link") {
    fs::rename(path, path + "-elsewhere");
    fs::create_symlink(path + "-elsewhere", path);
    CHECK(says(refusal_of_recorded(process), "no regular file"));
    fs::remove(path + "-elsewhere");
  }
}

TEST_CASE("The JIT map of a process that was recorded before and still runs may be older") {
  Sleeper process;
  test::write_text(process.map_path(), "1000 10 first\n");
  const uint64_t later_ns = os::unix_ns() + 10 * kNsPerSecond;
  const target::RecordedProcess recorded{.pid = process.pid(),
                                         .recording_begin_unix_ns = later_ns,
                                         .recording_end_unix_ns = later_ns + kNsPerSecond};
  CHECK(refusal_of_recorded(recorded) == "none");
  process.end();
  CHECK(says(refusal_of_recorded(recorded), "older than the recording"));
}
