#include "upload/spool.h"

#include "integration/temporary_directory.h"
#include "os/clock.h"
#include "support/catch2.h"
#include "support/fork_child.h"
#include "unit/upload/failing_disk.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;
using sentry_prof::ErrorCode;
using sentry_prof::sentry::Dsn;
using sentry_prof::test::DiskCall;
using sentry_prof::test::FailingDisk;
using sentry_prof::testing::TemporaryDirectory;
using namespace sentry_prof::upload;

namespace {

Spool opened(const std::string& path, SpoolLimits limits = {}) {
  auto spool = Spool::open(path, 0, limits);
  INFO((spool ? std::string() : spool.error().message));
  REQUIRE(spool);
  return std::move(*spool);
}

void keep(Spool& spool, const std::string& body) {
  REQUIRE(spool.keep(body, BodyEncoding::Gzip, Category::ProfileChunk));
}

// The oldest.
std::optional<SpooledEnvelope> take(Spool& spool) {
  REQUIRE(spool.rewind());
  return spool.take_next();
}

std::string taken_body(Spool& spool) {
  const auto envelope = take(spool);
  return envelope ? envelope->body : "(nothing)";
}

// Takes and removes all; the bodies in their order.
std::vector<std::string> drained(Spool& spool) {
  std::vector<std::string> bodies;
  while (auto envelope = take(spool)) {
    bodies.push_back(envelope->body);
    REQUIRE(spool.remove(std::move(*envelope)));
  }
  return bodies;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  return names;
}

std::string name_of(const std::string& body, uint64_t kept_unix_ns = sentry_prof::os::unix_ns()) {
  SpoolName name;
  name.kept_unix_ns = kept_unix_ns;
  name.checksum = checksum_of(body);
  name.categories = Category::ProfileChunk;
  return to_text(name);
}

void write_file(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("What is kept comes back as it was, oldest first, until it is removed", "[spool]") {
  const TemporaryDirectory folder;
  Spool spool = opened(folder.file("spool"));
  CHECK_FALSE(take(spool));
  REQUIRE(spool.keep("first", BodyEncoding::Zstd, Category::Profile | Category::Transaction));
  keep(spool, "second");
  keep(spool, std::string("\0third", 6));

  Spool later = opened(folder.file("spool"));  // another run
  CHECK(later.counts().ours == 3);
  {
    const auto envelope = take(later);
    REQUIRE(envelope);
    CHECK(envelope->body == "first");
    CHECK(envelope->encoding == BodyEncoding::Zstd);
    CHECK(envelope->categories == (Category::Profile | Category::Transaction));
  }
  CHECK(drained(later) == std::vector<std::string>{"first", "second", std::string("\0third", 6)});
  CHECK(names_in(folder.file("spool")).empty());
}

TEST_CASE("Folder and files are for their owner only", "[spool]") {
  const TemporaryDirectory folder;
  Spool spool = opened(folder.file("spool"));
  keep(spool, "x");
  struct stat status = {};
  REQUIRE(::stat(folder.file("spool").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  REQUIRE(::stat((folder.file("spool") + "/" + names_in(folder.file("spool"))[0]).c_str(),
                 &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("An envelope is in one pair of hands at a time", "[spool]") {
  const TemporaryDirectory folder;
  Spool one = opened(folder.path());
  Spool two = opened(folder.path());
  keep(one, "a");
  keep(one, "b");
  auto a = take(one);
  REQUIRE(a);
  CHECK(taken_body(two) == "b");
  CHECK(taken_body(one) == "b");
  REQUIRE(one.remove(std::move(*a)));
  CHECK(drained(two) == std::vector<std::string>{"b"});
}

TEST_CASE("What a process held when it was killed is free again", "[spool]") {
  const TemporaryDirectory folder;
  Spool spool = opened(folder.path());
  keep(spool, "a");
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = sentry_prof::test::fork_child();
  if (child == 0) {
    auto own = Spool::open(folder.path());
    if (!own->rewind()) ::_exit(1);
    auto held = own->take_next();
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK_FALSE(take(spool));
  REQUIRE(::kill(child, SIGKILL) == 0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(taken_body(spool) == "a");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("A walk over a spool offers each envelope once, new ones in the next walk", "[spool]") {
  const TemporaryDirectory folder;
  Spool spool = opened(folder.path());
  keep(spool, "a");
  keep(spool, "b");
  REQUIRE(spool.rewind());
  keep(spool, "c");
  for (const char* body : {"a", "b"}) {
    const auto envelope = spool.take_next();
    REQUIRE(envelope);
    CHECK(envelope->body == body);
  }
  CHECK_FALSE(spool.take_next());
  CHECK(drained(spool) == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("Limits hold over many envelopes, also where others keep them", "[spool]") {
  const TemporaryDirectory folder;
  SpoolLimits limits;
  limits.max_files = 20;
  Spool one = opened(folder.path(), limits);
  Spool other = opened(folder.path(), limits);
  for (int i = 0; i < 250; ++i) keep(one, "a");
  CHECK(one.counts().ours == 20);
  CHECK(one.losses().dropped_for_size == 230);
  for (int i = 0; i < 250; ++i) keep(other, "b");
  CHECK(other.counts().ours == 20);
}

TEST_CASE("Where bytes or files are short the oldest goes, and is counted", "[spool]") {
  const TemporaryDirectory folder;
  SpoolLimits limits;
  limits.max_bytes = 10;
  Spool spool = opened(folder.file("bytes"), limits);
  for (const char* body : {"aaaa", "bbbb", "cc", "dddd"}) keep(spool, body);
  CHECK(spool.losses().dropped_for_size == 1);
  CHECK(drained(spool) == std::vector<std::string>{"bbbb", "cc", "dddd"});
  const auto too_large = spool.keep("eleven bytes", BodyEncoding::Gzip, Category::Profile);
  REQUIRE_FALSE(too_large);
  CHECK(too_large.error().code == ErrorCode::LimitExceeded);

  limits = {};
  limits.max_files = 2;
  Spool few = opened(folder.file("files"), limits);
  for (const char* body : {"a", "b", "c"}) keep(few, body);
  CHECK(few.losses().dropped_for_size == 1);
  CHECK(drained(few) == std::vector<std::string>{"b", "c"});
}

TEST_CASE("What is being sent is not dropped to make room", "[spool]") {
  const TemporaryDirectory folder;
  SpoolLimits limits;
  limits.max_files = 2;
  Spool spool = opened(folder.path(), limits);
  keep(spool, "a");
  keep(spool, "b");
  {
    const auto in_flight = take(spool);
    keep(spool, "c");
  }
  CHECK(drained(spool) == std::vector<std::string>{"a", "c"});
}

TEST_CASE("What is too old is dropped, and counted; the future is not old", "[spool]") {
  const TemporaryDirectory folder;
  SpoolLimits limits;
  limits.max_age_s = 3600;
  Spool spool = opened(folder.path(), limits);
  const uint64_t now = sentry_prof::os::unix_ns();
  write_file(folder.file(name_of("old", now - 3700 * UINT64_C(1'000'000'000))), "old");
  write_file(folder.file(name_of("young", now - 3000 * UINT64_C(1'000'000'000))), "young");
  write_file(folder.file(name_of("early", now + 9000 * UINT64_C(1'000'000'000))), "early");
  CHECK(drained(spool) == std::vector<std::string>{"young", "early"});
  CHECK(spool.losses().dropped_for_age == 1);
}

TEST_CASE("What is kept for another project or server is neither offered nor counted", "[spool]") {
  const TemporaryDirectory folder;
  const uint64_t one_project = destination_of(*Dsn::parse("https://key@o1.ingest.sentry.io/1"));
  const uint64_t other_project = destination_of(*Dsn::parse("https://key@o1.ingest.sentry.io/2"));
  CHECK(destination_of(*Dsn::parse("http://new@o1.ingest.sentry.io:8080/1")) == one_project);
  Spool one = *Spool::open(folder.path(), one_project);
  Spool other = *Spool::open(folder.path(), other_project);
  Spool anybody = *Spool::open(folder.path());
  keep(one, "of one");
  keep(other, "of the other");
  keep(anybody, "of anybody");
  CHECK(one.counts().ours == 2);
  CHECK(one.counts().for_others == 1);
  CHECK(anybody.counts().ours == 3);
  CHECK(drained(other) == std::vector<std::string>{"of the other", "of anybody"});
  CHECK(other.counts().ours == 0);
  CHECK(other.counts().for_others == 1);
  CHECK(drained(one) == std::vector<std::string>{"of one"});
}

TEST_CASE("A spool whose directory is made anew is the new one", "[spool]") {
  const TemporaryDirectory folder;
  const std::string path = folder.file("spool");
  Spool keeper = opened(path);
  Spool sender = opened(path);
  keep(keeper, "in the old one");
  fs::rename(path, folder.file("away"));
  REQUIRE(fs::create_directory(path));
  fs::permissions(path, fs::perms::owner_all);
  keep(keeper, "in the new one");
  CHECK(drained(sender) == std::vector<std::string>{"in the new one"});
  fs::remove_all(path);
  CHECK_FALSE(keeper.keep("nowhere", BodyEncoding::Gzip, Category::ProfileChunk));
  CHECK(drained(sender).empty());
  REQUIRE(fs::create_directory(path));
  fs::permissions(path, fs::perms::all);
  CHECK_FALSE(keeper.keep("for all to write", BodyEncoding::Gzip, Category::ProfileChunk));
}

TEST_CASE("The newest is taken from the other end, and each but once", "[spool]") {
  const TemporaryDirectory folder;
  Spool spool = opened(folder.path());
  for (const char* body : {"a", "b", "c"}) keep(spool, body);
  REQUIRE(spool.rewind());
  CHECK(spool.take_next()->body == "a");
  CHECK(spool.take_newest()->body == "c");
  CHECK(spool.take_newest()->body == "b");
  CHECK_FALSE(spool.take_newest());
  CHECK_FALSE(spool.take_next());
}

TEST_CASE("Foreign files are left alone, damaged ones set aside", "[spool]") {
  const TemporaryDirectory folder;
  write_file(folder.file("notes.txt"), "mine");
  write_file(folder.file("victim"), "secret");
  write_file(folder.file(name_of("whole")), "who");
  fs::create_symlink(folder.file("victim"), folder.file(name_of("secret")));
  fs::create_directory(folder.file(name_of("directory")));
  REQUIRE(::mkfifo(folder.file(name_of("fifo")).c_str(), 0600) == 0);
  const std::string huge = folder.file(name_of("huge"));
  write_file(huge, "");
  fs::resize_file(huge, UINT64_C(1) << 40);

  Spool spool = opened(folder.path());
  keep(spool, "good");
  CHECK(drained(spool) == std::vector<std::string>{"good"});
  CHECK(spool.losses().set_aside == 5);
  CHECK(spool.counts().ours == 0);
  CHECK(fs::exists(folder.file("notes.txt")));
  CHECK(fs::exists(folder.file("victim")));
}

TEST_CASE("What was set aside is within the limits, and goes before what can be sent", "[spool]") {
  const TemporaryDirectory folder;
  SpoolLimits limits;
  limits.max_files = 3;
  Spool spool = opened(folder.path(), limits);
  for (const char* damaged : {"a", "b", "c", "d"}) {
    write_file(folder.file(name_of(damaged)), "not what its name says");
  }
  CHECK(drained(spool).empty());
  CHECK(spool.losses().set_aside == 4);
  CHECK(names_in(folder.path()).size() == 4);
  for (const char* body : {"one", "two"}) keep(spool, body);
  CHECK(names_in(folder.path()).size() == 3);
  keep(spool, "three");
  CHECK(names_in(folder.path()).size() == 3);
  CHECK(spool.losses().dropped_for_size == 0);
  CHECK(drained(spool) == std::vector<std::string>{"one", "two", "three"});
}

TEST_CASE("What was set aside does not stay longer than the rest", "[spool]") {
  const TemporaryDirectory folder;
  const std::string old = name_of("old", 1'000'000'000) + ".bad";
  const std::string young = name_of("young", sentry_prof::os::unix_ns()) + ".bad";
  for (const std::string& name : {old, young}) write_file(folder.file(name), "x");
  Spool spool = opened(folder.path());
  keep(spool, "good");
  CHECK_FALSE(fs::exists(folder.file(old)));
  CHECK(fs::exists(folder.file(young)));
  CHECK(spool.losses().dropped_for_age == 0);
}

TEST_CASE("A spool that all may write to is refused", "[spool]") {
  const TemporaryDirectory folder;
  fs::permissions(folder.path(), fs::perms(0777));
  const auto spool = Spool::open(folder.path());
  REQUIRE_FALSE(spool);
  CHECK(spool.error().code == ErrorCode::PermissionDenied);
}

TEST_CASE("What is no directory, or has none above it, is told", "[spool]") {
  const TemporaryDirectory folder;
  write_file(folder.file("file"), "");
  CHECK_FALSE(Spool::open(folder.file("file")));
  const auto missing = Spool::open(folder.file("a/b"));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::NotFound);
  CHECK(missing.error().message.find(folder.file("a/b")) != std::string::npos);
}

TEST_CASE("What a process left half written goes at the next start", "[spool]") {
  const TemporaryDirectory folder;
  // A pid that is above any limit of the kernel's (PID_MAX_LIMIT is 4194304).
  const std::string leftover = folder.file(std::string(".").append(name_of("x")) +
                                           ".999999999-0123456789abcdef.sentry-prof-tmp");
  write_file(leftover, "ha");
  const std::string foreign = folder.file(".other.999999999-0123456789abcdef.sentry-prof-tmp");
  write_file(foreign, "ha");
  Spool spool = opened(folder.path());
  CHECK(spool.counts().ours == 0);
  CHECK_FALSE(fs::exists(leftover));
  CHECK(fs::exists(foreign));
}

TEST_CASE("Killed at any moment, what was kept is there and whole", "[spool]") {
  for (int round = 0; round < 20; ++round) {
    const TemporaryDirectory folder;
    int told[2];
    REQUIRE(::pipe(told) == 0);
    const pid_t child = sentry_prof::test::fork_child();
    if (child == 0) {
      auto spool = Spool::open(folder.path());
      for (uint32_t number = 0;; ++number) {
        const std::string body(10'000, static_cast<char>('a' + number % 26));
        if (!spool->keep(body, BodyEncoding::Gzip, Category::ProfileChunk)) ::_exit(1);
        if (::write(told[1], "k", 1) != 1) ::_exit(1);
      }
    }
    ::close(told[1]);
    char byte = 0;
    size_t kept = 0;
    while (kept < 3 && ::read(told[0], &byte, 1) == 1) ++kept;
    ::usleep(static_cast<useconds_t>(round * 137));  // into another moment of keep() each round
    REQUIRE(::kill(child, SIGKILL) == 0);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    while (::read(told[0], &byte, 1) == 1) ++kept;
    ::close(told[0]);

    Spool spool = opened(folder.path());
    const auto bodies = drained(spool);
    // One more may be there that it had no time to tell of.
    CHECK(bodies.size() >= kept);
    CHECK(bodies.size() <= kept + 1);
    for (size_t i = 0; i < bodies.size(); ++i) {
      CHECK(bodies[i] == std::string(10'000, static_cast<char>('a' + i % 26)));
    }
    CHECK(spool.losses().set_aside == 0);
    CHECK(names_in(folder.path()).empty());
  }
}

TEST_CASE("Under sudo the spool belongs to the user who typed the command", "[spool]") {
  if (::geteuid() != 0) return;
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/spool";
  ::setenv("SUDO_UID", "65534", 1);
  ::setenv("SUDO_GID", "65534", 1);
  CHECK(Spool::open(path));
  CHECK(Spool::open(path));  // also the second time
  ::unsetenv("SUDO_UID");
  ::unsetenv("SUDO_GID");
  struct stat facts = {};
  REQUIRE(::stat(path.c_str(), &facts) == 0);
  CHECK(facts.st_uid == 65534);
  CHECK((facts.st_mode & 07777) == 0700);
  // Anybody else's is not taken.
  const auto taken_over = Spool::open(path);
  REQUIRE_FALSE(taken_over);
  CHECK(taken_over.error().code == ErrorCode::PermissionDenied);
}

TEST_CASE("An envelope that may not be opened is told, one that somebody has is not", "[spool]") {
  const TemporaryDirectory folder;
  auto owner = Spool::open(folder.path());
  REQUIRE(owner);
  REQUIRE(owner->keep("a", BodyEncoding::Identity, Category::Transaction));
  auto other = Spool::open(folder.path());
  REQUIRE(other);
  REQUIRE(owner->rewind());
  {
    const auto held = owner->take_next();
    REQUIRE(held);
    REQUIRE(other->rewind());
    CHECK_FALSE(other->take_next());
    CHECK_FALSE(other->unreadable());
  }
  // No descriptors left: as EACCES, but for root, too.
  REQUIRE(other->rewind());
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit none{3, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const bool has_taken = other->take_next().has_value();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK_FALSE(has_taken);
  REQUIRE(other->unreadable());
  CHECK(other->unreadable()->message.find("EMFILE") != std::string::npos);
}

TEST_CASE("An envelope that cannot be committed is taken back, and told", "[spool]") {
  const TemporaryDirectory folder;
  Spool spool = opened(folder.path());
  const auto call = GENERATE(DiskCall::SyncFile, DiskCall::Rename, DiskCall::SyncDirectory);
  INFO(static_cast<int>(call));
  {
    const FailingDisk disk(call);
    const auto kept = spool.keep("a", BodyEncoding::Gzip, Category::ProfileChunk);
    REQUIRE_FALSE(kept);
    CHECK(kept.error().code == ErrorCode::Io);
    CHECK(kept.error().message.find(folder.path()) != std::string::npos);
    CHECK(kept.error().message.find("EIO") != std::string::npos);
  }
  CHECK(names_in(folder.path()).empty());
  keep(spool, "b");
  CHECK(drained(spool) == std::vector<std::string>{"b"});
}

TEST_CASE("An envelope that cannot be read now is left for later, and told", "[spool]") {
  const TemporaryDirectory folder;
  Spool spool = opened(folder.path());
  keep(spool, "a");
  REQUIRE(spool.rewind());
  {
    const FailingDisk disk(DiskCall::Read);
    CHECK_FALSE(spool.take_next());
    REQUIRE(spool.unreadable());
    CHECK(spool.unreadable()->message.find("EIO") != std::string::npos);
    CHECK(spool.losses().set_aside == 0);
  }
  REQUIRE(spool.rewind());
  CHECK(drained(spool) == std::vector<std::string>{"a"});
}
