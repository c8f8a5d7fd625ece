#include "os/file.h"

#include "os/errors.h"
#include "support/catch2.h"
#include "unit/os/scratch.h"

#include <array>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sentry_prof;
using test::ScratchDirectory;
using test::write_text;

TEST_CASE("FileByteSource reads within the file only") {
  const ScratchDirectory scratch;
  write_text(scratch / "file", "0123456789");
  const auto file = os::FileByteSource::adopt(os::Fd(::open((scratch / "file").c_str(), O_RDONLY)));
  REQUIRE(file);
  CHECK((*file)->size_bytes() == 10);
  std::array<std::byte, 4> bytes{};
  REQUIRE((*file)->read_at(6, bytes));
  CHECK(bytes[3] == std::byte{'9'});
  CHECK_FALSE((*file)->read_at(7, bytes));
  CHECK_FALSE((*file)->read_at(UINT64_MAX - 1, bytes));
  CHECK_FALSE((*file)->read_at(INT64_MAX, bytes));
}

TEST_CASE("FileByteSource of a file that was truncated meanwhile fails and does no harm") {
  const ScratchDirectory scratch;
  write_text(scratch / "file", std::string(100'000, 'x'));
  const auto file = os::FileByteSource::adopt(os::Fd(::open((scratch / "file").c_str(), O_RDONLY)));
  REQUIRE(file);
  REQUIRE(::truncate((scratch / "file").c_str(), 10) == 0);
  std::vector<std::byte> bytes(1000);
  CHECK_FALSE((*file)->read_at(50'000, bytes));
  CHECK_FALSE((*file)->read_at(0, bytes));
}

TEST_CASE("FileByteSource of a file that was written to in place reads nothing more, if asked to") {
  const ScratchDirectory scratch;
  const std::string path = scratch / "file";
  write_text(path, "0123456789");
  const auto open = [&path](os::FileByteSource::Changes changes) {
    auto file = os::FileByteSource::adopt(os::Fd(::open(path.c_str(), O_RDONLY)), changes);
    REQUIRE(file);
    return *file;
  };
  const auto refused = open(os::FileByteSource::Changes::Refused);
  const auto followed = open(os::FileByteSource::Changes::Followed);
  std::array<std::byte, 4> bytes{};
  CHECK(refused->read_at(0, bytes));
  CHECK(refused->is_unchanged());
  // As a build that takes a second would leave it: the test does not wait for the kernel's clock.
  write_text(path, "9876543210");
  const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, timespec{1'000'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0) == 0);
  CHECK_FALSE(refused->was_changed());
  CHECK_FALSE(refused->read_at(0, bytes));
  CHECK(refused->was_changed());
  CHECK_FALSE(refused->is_unchanged());
  REQUIRE(followed->read_at(0, bytes));
  CHECK(bytes[0] == std::byte{'9'});
  CHECK(followed->is_unchanged());
}

TEST_CASE("FileByteSource takes regular files only") {
  const ScratchDirectory scratch;
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0600) == 0);
  for (const std::string& path :
       {scratch / "fifo", scratch.path().string(), std::string("/dev/zero")}) {
    const auto file =
        os::FileByteSource::adopt(os::Fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK)));
    REQUIRE_FALSE(file);
    CHECK(file.error().code == ErrorCode::Unsupported);
  }
  CHECK_FALSE(os::FileByteSource::adopt(os::Fd()));
}

TEST_CASE("read_small_file reads files of /proc, whose size stat does not tell") {
  const auto text = os::read_small_file("/proc/self/status");
  REQUIRE(text);
  CHECK(text->find("\nPid:\t" + std::to_string(::getpid()) + "\n") != std::string::npos);
}

TEST_CASE("read_small_file keeps its limit and never blocks on a FIFO") {
  const ScratchDirectory scratch;
  write_text(scratch / "file", std::string(200'000, 'x'));
  CHECK(os::read_small_file(scratch / "file", 200'000)->size() == 200'000);
  CHECK(os::read_small_file(scratch / "file", 199'999).error().code == ErrorCode::LimitExceeded);
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0600) == 0);
  CHECK(os::read_small_file(scratch / "fifo").error().code == ErrorCode::Unsupported);
  const auto missing = os::read_small_file(scratch / "none");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::NotFound);
  CHECK(missing.error().message == (scratch / "none") + ": ENOENT: No such file or directory");
}

TEST_CASE("An errno without a name is told as a number") {
  CHECK(os::describe_errno(EACCES) == "EACCES: Permission denied");
  CHECK(os::describe_errno(123456) == "error 123456");
}
