#include "os/input_file.h"

#include "scratch.h"
#include "support/catch2.h"

#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

using test::ScratchDirectory;

Result<std::string> read_all(const std::string& path) { return read_input(path, 1'000'000); }

void make_fifo(const std::string& path) { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }

}  // namespace

TEST_CASE("InputFile: a regular file knows its size and is read to its end") {
  const ScratchDirectory scratch;
  const std::string text(12345, 'x');
  test::write_text(scratch / "file", text);
  CHECK(InputFile::open(scratch / "file")->size_bytes() == 12345u);
  CHECK(read_all(scratch / "file") == text);
}

TEST_CASE("read_input: a file of as many bytes as are allowed is read, one more is refused") {
  const ScratchDirectory scratch;
  test::write_text(scratch / "file", std::string(20'000, 'x'));
  CHECK(read_input(scratch / "file", 20'000)->size() == 20'000);
  const auto refused = read_input(scratch / "file", 19'999);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::LimitExceeded);
  CHECK(refused.error().message == scratch / "file" + ": larger than 19999 bytes");
}

TEST_CASE("InputFile: what grows after the opening is read as well") {
  const ScratchDirectory scratch;
  test::write_text(scratch / "file", "one");
  auto file = InputFile::open(scratch / "file");
  REQUIRE(file);
  test::write_text(scratch / "file", "one two");
  char buffer[100];
  CHECK(file->read(buffer) == 7u);
  CHECK(file->read(buffer) == 0u);
}

TEST_CASE("InputFile: missing files, directories and sockets are refused with their names") {
  const ScratchDirectory scratch;
  const auto missing = InputFile::open(scratch / "missing");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::NotFound);
  CHECK(missing.error().message.find("missing") != std::string::npos);
  const auto directory = InputFile::open(scratch.path());
  REQUIRE_FALSE(directory);
  CHECK(directory.error().message == scratch.path().string() + ": is a directory");

  const Fd listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (scratch / "socket").copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  CHECK_FALSE(InputFile::open(scratch / "socket"));
}

TEST_CASE("InputFile: a FIFO that nobody writes to is an error, not a wait without end") {
  const ScratchDirectory scratch;
  make_fifo(scratch / "fifo");
  const auto text = read_all(scratch / "fifo");
  REQUIRE_FALSE(text);
  CHECK(text.error().message == scratch / "fifo" + ": a pipe that nobody writes to");
}

TEST_CASE("InputFile: a FIFO is read to the end that its writer makes") {
  const ScratchDirectory scratch;
  make_fifo(scratch / "fifo");
  std::thread writer([&] { test::write_text(scratch / "fifo", std::string(300'000, 'x')); });
  const auto text = read_all(scratch / "fifo");
  writer.join();
  CHECK(text == std::string(300'000, 'x'));
}

TEST_CASE("InputFile: a writer that leaves without a word leaves an empty file") {
  const ScratchDirectory scratch;
  make_fifo(scratch / "fifo");
  auto file = InputFile::open(scratch / "fifo");
  REQUIRE(file);
  std::thread writer([&] { Fd end(::open((scratch / "fifo").c_str(), O_WRONLY)); });
  char buffer[10];
  const auto count = file->read(buffer);
  writer.join();
  CHECK(count == 0u);
}

TEST_CASE("InputFile: a pipe handed over by number, as a shell's <(...) does") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  REQUIRE(::write(writer.get(), "text", 4) == 4);
  writer.reset();
  CHECK(read_all("/dev/fd/" + std::to_string(reader.get())) == std::string("text"));
}

TEST_CASE("InputFile: devices are read like streams") {
  CHECK(read_all("/dev/null") == std::string());
  auto zeros = InputFile::open("/dev/zero");
  REQUIRE(zeros);
  CHECK_FALSE(zeros->size_bytes());
  char buffer[10] = "not zeros";
  CHECK(zeros->read(buffer) == 10u);
  CHECK(std::string(buffer, 10) == std::string(10, '\0'));
}

TEST_CASE("InputFile: standard input counts from where it stands") {
  const ScratchDirectory scratch;
  test::write_text(scratch / "file", "one two");
  const int status = test::status_of_child([&] {
    const Fd file(::open((scratch / "file").c_str(), O_RDONLY));
    ::dup2(file.get(), STDIN_FILENO);
    ::lseek(STDIN_FILENO, 4, SEEK_SET);
    const auto input = InputFile::open("-");
    return input && input->size_bytes() == 3u && read_all("-") == std::string("two") ? 0 : 1;
  });
  CHECK(status == 0);
}

}  // namespace sentry_prof::os
