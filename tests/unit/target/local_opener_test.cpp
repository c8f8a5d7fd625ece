// Files of this machine for mappings of another time: what proves them, and where copies are found.
#include "target/local_opener.h"

#include "base/hex.h"
#include "os/clock.h"
#include "support/catch2.h"
#include "support/skips.h"
#include "target/mapping_kind.h"
#include "target/proc.h"
#include "unit/os/scratch.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sentry_prof;
using namespace sentry_prof::target;
using test::ScratchDirectory;

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLater_ns = UINT64_MAX;

void write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

uint64_t inode_of(const std::string& path) {
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_ino;
}

MappingFacts mapping_of(const std::string& path, uint64_t inode) {
  MappingFacts mapping;
  mapping.path = path;
  mapping.inode = inode;
  mapping.size_bytes = 0x1000;
  return mapping;
}

const std::vector<std::byte> kBuildId(20, std::byte{0xab});

std::string cached(const std::string& cache, const char* name) {
  const std::string id = to_hex(kBuildId);
  return cache + "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + "/" + name;
}

}  // namespace

TEST_CASE("without a build id a file is taken by its inode, if it was not changed since") {
  const ScratchDirectory scratch;
  const std::string path = scratch / "program";
  write(path, "12345");
  const MappingFacts mapping = mapping_of(path, inode_of(path));
  const auto opened = make_local_opener({kLater_ns, ""})->open(mapping);
  REQUIRE(opened);
  CHECK((*opened)->size_bytes() == 5);
  CHECK_FALSE(make_local_opener({os::unix_ns() - 3'600'000'000'000, ""})->open(mapping));
  CHECK_FALSE(make_local_opener({kLater_ns, ""})->open(mapping_of(path, mapping.inode + 1)));
  CHECK_FALSE(make_local_opener({kLater_ns, ""})->open(mapping_of(path, 0)));
}

TEST_CASE("a link that perf makes into its cache is no change") {
  const ScratchDirectory scratch;
  const std::string path = scratch / "program";
  write(path, "12345");
  const uint64_t recorded_ns = os::unix_ns();
  // Times of files are those of the kernel's last tick.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  fs::create_hard_link(path, scratch / "linked");
  const auto opener = make_local_opener({recorded_ns, ""});
  const MappingFacts mapping = mapping_of(path, inode_of(path));
  CHECK(opener->open(mapping));
  write(path, "54321");
  const auto refused = opener->open(mapping);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("--buildid-all") != std::string::npos);
}

TEST_CASE("a file that was installed since is refused, however old it says it is") {
  const ScratchDirectory scratch;
  const std::string path = scratch / "program";
  write(path, "12345");
  struct statx status = {};
  REQUIRE(::statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &status) == 0);
  if ((status.stx_mask & STATX_BTIME) == 0) return;  // not told by this file system
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
  const uint64_t recorded_ns = os::unix_ns() - 3'600'000'000'000;
  CHECK_FALSE(make_local_opener({recorded_ns, ""})->open(mapping_of(path, inode_of(path))));
}

TEST_CASE("with a build id, which the store compares, age and inode do not matter") {
  const ScratchDirectory scratch;
  const std::string path = scratch / "program";
  write(path, "12345");
  MappingFacts mapping = mapping_of(path, 1);
  mapping.build_id = kBuildId;
  CHECK(make_local_opener({0, ""})->open(mapping));
}

TEST_CASE("a file that is gone, or is another one, is looked for by build id") {
  const ScratchDirectory scratch;
  const std::string cache = scratch / "cache";
  write(cached(cache, "elf"), "copy");
  write(cached(cache, "vdso"), "vdso");
  MappingFacts mapping = mapping_of(scratch / "gone", 1);
  mapping.build_id = kBuildId;
  const auto opener = make_local_opener({0, cache});
  CHECK(opener->open(mapping));
  CHECK(opener->open_by_path(mapping));
  mapping.path = kVdsoPath;
  mapping.size_bytes = 1;  // not our own's
  CHECK(opener->open(mapping));
  CHECK_FALSE(make_local_opener({0, ""})->open(mapping));
  mapping.build_id.back() = std::byte{0};
  CHECK_FALSE(opener->open(mapping));
}

TEST_CASE("a debug file is that very file, or the cache's, never the image itself") {
  const ScratchDirectory scratch;
  const std::string cache = scratch / "cache";
  write(cached(cache, "elf"), "image");
  const std::string id = to_hex(kBuildId);
  MappingFacts mapping;
  mapping.path = scratch / ("debug/.build-id/" + id.substr(0, 2) + '/' + id.substr(2) + ".debug");
  mapping.build_id = kBuildId;
  const auto opener = make_local_opener({0, cache});
  CHECK_FALSE(opener->open_by_path(mapping));
  write(cached(cache, "debug"), "in the cache");
  const auto copy = opener->open_by_path(mapping);
  REQUIRE(copy);
  CHECK((*copy)->size_bytes() == 12);
  write(mapping.path, "by name");
  const auto found = opener->open_by_path(mapping);
  REQUIRE(found);
  CHECK((*found)->size_bytes() == 7);
}

TEST_CASE("a vdso without a build id may be of any kernel, unless it was recorded under ours") {
  const auto self = read_process(::getpid());
  REQUIRE(self);
  const auto own = std::ranges::find(self->mappings, kVdsoPath, &MappingFacts::path);
  if (own == self->mappings.end()) {
    testing::note_optional_skip("this kernel maps no vdso");
    return;
  }
  CHECK_FALSE(make_local_opener({kLater_ns, "", false})->open(*own));
  CHECK(make_local_opener({kLater_ns, "", true})->open(*own));
  MappingFacts larger = *own;
  larger.size_bytes += 0x1000;
  CHECK_FALSE(make_local_opener({kLater_ns, "", true})->open(larger));
}

TEST_CASE("only regular files with a whole path are opened") {
  const ScratchDirectory scratch;
  const std::string fifo = scratch / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const auto opener = make_local_opener({kLater_ns, ""});
  CHECK_FALSE(opener->open(mapping_of(fifo, inode_of(fifo))));  // and does not wait
  CHECK_FALSE(opener->open(mapping_of("/dev/zero", inode_of("/dev/zero"))));
  CHECK_FALSE(opener->open(mapping_of("program", 1)));
  CHECK_FALSE(opener->open(mapping_of("//anon", 1)));
}
