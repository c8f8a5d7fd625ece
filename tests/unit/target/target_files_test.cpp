// Files of this very process, opened by another one.
#include "target/target_files.h"

#include "os/file.h"
#include "os/paths.h"
#include "support/catch2.h"
#include "target/launch.h"
#include "target/mapping_kind.h"
#include "target/proc.h"
#include "unit/os/scratch.h"

#include <array>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sentry_prof;
using target::FileReply;
using target::FileRequest;
using target::FileRequestKind;
using target::FileServer;
using target::MappingFacts;
using target::TargetFiles;

namespace {

bool always(int /*fd*/) { return true; }
bool never(int /*fd*/) { return false; }

MappingFacts own_mapping(target::MappingKind kind) {
  const auto self = target::read_process(::getpid());
  REQUIRE(self);
  for (const MappingFacts& mapping : self->mappings) {
    if (target::kind_of_mapping(mapping.path) == kind) return mapping;
  }
  FAIL("no such mapping");
  return {};
}

std::string text_of(const ByteSource& source) {
  std::string text(source.size_bytes(), '\0');
  REQUIRE(source.read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

FileReply reply_to(FileServer& server, std::string question) {
  const auto answer = server.answer(std::as_bytes(std::span(question)));
  const auto reply = target::from_message<FileReply>(std::as_bytes(std::span(answer.bytes)));
  REQUIRE(reply);
  return *reply;
}

}  // namespace

TEST_CASE("A file is passed on, or read by who opened it: the bytes are the same") {
  const FileServer::MayPass may_pass = GENERATE(always, never);
  const auto files = TargetFiles::start(may_pass);
  REQUIRE(files);
  const auto opener = (*files)->make_opener();
  const MappingFacts program = own_mapping(target::MappingKind::File);
  const auto opened = opener->open(program);
  REQUIRE(opened);
  const auto direct = os::FileByteSource::open("/proc/self/exe");
  REQUIRE(direct);
  CHECK(text_of(**opened) == text_of(**direct));
  std::vector<std::byte> beyond(2);
  CHECK_FALSE((*opened)->read_at((*opened)->size_bytes() - 1, beyond));
  CHECK(opener->open_by_path(program));
  CHECK_FALSE(opener->name_is_literal({}));
  CHECK((*files)->requests_given_up() == 0);
}

TEST_CASE("Of an image that is overwritten in place nothing more is read, whoever reads it") {
  const FileServer::MayPass may_pass = GENERATE(always, never);
  const auto files = TargetFiles::start(may_pass);
  REQUIRE(files);
  const test::ScratchDirectory scratch;
  MappingFacts program{.pid = static_cast<uint32_t>(::getpid())};
  program.path = scratch / "program";
  const std::string text(2 * target::kMaxFilePiece_bytes + 1000, 'a');
  test::write_text(program.path, text);
  const auto opened = (*files)->make_opener()->open_by_path(program);
  REQUIRE(opened);
  CHECK(text_of(**opened) == text);
  CHECK((*opened)->is_unchanged());
  test::write_text(program.path, std::string(text.size(), 'b'));
  const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, timespec{1'000'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, program.path.c_str(), times.data(), 0) == 0);
  CHECK_FALSE((*opened)->was_changed());
  std::vector<std::byte> bytes(1000);
  if (may_pass == never) {
    CHECK((*opened)->read_at(0, bytes));
    CHECK(bytes == std::vector<std::byte>(1000, std::byte{'a'}));
  }
  CHECK_FALSE((*opened)->read_at(90'000, bytes));
  CHECK((*opened)->was_changed());
  CHECK_FALSE((*opened)->is_unchanged());
  CHECK_FALSE((*opened)->was_silent());
}

TEST_CASE(
    "Small reads of a file that somebody else has open are answered by what they read before") {
  const auto files = TargetFiles::start(never);
  REQUIRE(files);
  const auto opened = (*files)->make_opener()->open(own_mapping(target::MappingKind::File));
  REQUIRE(opened);
  const auto direct = os::FileByteSource::open("/proc/self/exe");
  REQUIRE(direct);
  std::array<std::byte, 64> bytes{};
  const uint64_t end = (*opened)->size_bytes() - bytes.size();
  REQUIRE((*opened)->read_at(end, bytes));
  (*files)->end();
  // The end, and the begin, which came along when it was opened.
  for (const uint64_t offset : {end, uint64_t{0}, uint64_t{1000}}) {
    INFO(offset);
    std::array<std::byte, 64> expected{};
    bytes.fill({});
    REQUIRE((*direct)->read_at(offset, expected));
    CHECK((*opened)->read_at(offset, bytes));
    CHECK(bytes == expected);
  }
  CHECK_FALSE((*opened)->was_silent());
  CHECK_FALSE((*opened)->read_at(target::RecentPieces::kPiece_bytes, bytes));
  CHECK((*opened)->was_silent());
}

TEST_CASE("What cannot be opened says why, as if it had been tried here") {
  const auto files = TargetFiles::start();
  REQUIRE(files);
  MappingFacts gone = own_mapping(target::MappingKind::File);
  gone.begin.value += 0x1000;
  gone.path = "/there/is/no/such/file";
  const auto opened = (*files)->make_opener()->open(gone);
  const auto direct = target::make_proc_opener()->open(gone);
  REQUIRE_FALSE(opened);
  REQUIRE_FALSE(direct);
  CHECK(opened.error().code == direct.error().code);
  CHECK(opened.error().message == direct.error().message);
  CHECK((*files)->requests_given_up() == 0);
}

TEST_CASE("The vdso needs nobody else") {
  const auto files = TargetFiles::start();
  REQUIRE(files);
  const MappingFacts vdso = own_mapping(target::MappingKind::Vdso);
  const auto opened = (*files)->make_opener()->open(vdso);
  REQUIRE(opened);
  CHECK((*opened)->size_bytes() == vdso.size_bytes);
}

TEST_CASE("A JIT map that somebody else has open grows, too") {
  const FileServer::MayPass may_pass = GENERATE(always, never);
  const auto files = TargetFiles::start(may_pass);
  REQUIRE(files);
  const auto pid = static_cast<uint32_t>(::getpid());
  const std::string path = fmt::format("/tmp/perf-{}.map", pid);
  test::write_text(path, "1000 10 first\n");
  const auto map = (*files)->find_jit_map(pid, 0);
  std::ofstream(path, std::ios::app) << "2000 10 second\n";
  ::unlink(path.c_str());
  REQUIRE(map);
  const auto file = (*map)();
  REQUIRE(file);
  CHECK(text_of(*file) == "1000 10 first\n2000 10 second\n");
}

TEST_CASE("A JIT map that a process writes last is found by who looked for it before") {
  const FileServer::MayPass may_pass = GENERATE(always, never);
  const auto files = TargetFiles::start(may_pass);
  REQUIRE(files);
  auto child = target::LaunchedChild::start({"sleep", "1000"});
  REQUIRE(child);
  const auto pid = static_cast<uint32_t>(child->pid());
  CHECK_FALSE((*files)->find_jit_map(pid, 0));
  ::kill(child->pid(), SIGKILL);
  REQUIRE(child->wait());
  const std::string path = fmt::format("/tmp/perf-{}.map", pid);
  test::write_text(path, "1000 10 last\n");
  const auto map = (*files)->find_jit_map(pid, 0);
  ::unlink(path.c_str());
  REQUIRE(map);
  const auto file = (*map)();
  REQUIRE(file);
  CHECK(text_of(*file) == "1000 10 last\n");
}

TEST_CASE("Two paths are compared by who may wait for it") {
  const auto files = TargetFiles::start();
  REQUIRE(files);
  CHECK((*files)->is_same_file("/proc/self/exe", "/proc/thread-self/exe") == true);
  CHECK((*files)->is_same_file("/proc/self/exe", "/") == false);
  (*files)->end();
  CHECK((*files)->is_same_file("/proc/self/exe", "/") == std::nullopt);
}

TEST_CASE("What the server is asked may be wrong") {
  FileServer server(never);
  CHECK(reply_to(server, "").error.code == ErrorCode::Malformed);
  FileRequest request;
  request.kind = static_cast<FileRequestKind>(200);
  CHECK(reply_to(server, to_message(request)).error.code == ErrorCode::Malformed);
  for (const auto kind : {FileRequestKind::Read, FileRequestKind::Size}) {
    request.kind = kind;
    request.file = 5;
    CHECK_FALSE(reply_to(server, to_message(request)).is_yes);
  }
}

TEST_CASE("The server keeps files by the asker's numbers until it is asked to close them") {
  FileServer server(never);
  FileRequest open{FileRequestKind::Open, own_mapping(target::MappingKind::File)};
  FileRequest size{.kind = FileRequestKind::Size};
  FileRequest close{.kind = FileRequestKind::Close};
  for (const uint64_t number : {uint64_t{7}, uint64_t{1} << 40}) {
    open.file = size.file = number;
    CHECK_FALSE(reply_to(server, to_message(size)).is_yes);
    CHECK(reply_to(server, to_message(open)).is_yes);
    CHECK(reply_to(server, to_message(size)).is_yes);
    close.closed_files.push_back(number);
  }
  close.closed_files.push_back(8);
  CHECK(reply_to(server, to_message(close)).is_yes);
  for (const uint64_t number : close.closed_files) {
    size.file = number;
    CHECK_FALSE(reply_to(server, to_message(size)).is_yes);
  }
}

TEST_CASE("Only file systems of the kernel's own are read without asking") {
  const os::Fd memory(::memfd_create("memory", MFD_CLOEXEC));
  CHECK(target::is_read_without_asking(memory.get()));
  const auto proc = os::FileByteSource::open("/proc/self/stat");
  REQUIRE(proc);
  CHECK_FALSE(target::is_read_without_asking((*proc)->fd()));
  CHECK_FALSE(target::is_read_without_asking(-1));
}
