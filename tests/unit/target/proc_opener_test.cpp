// Files behind the mappings of a real program, copied so that they can be deleted and replaced.
#include "support/catch2.h"
#include "support/fork_child.h"
#include "support/skips.h"
#include "target/image_store.h"
#include "target/launch.h"
#include "target/mapping_kind.h"
#include "target/proc.h"
#include "unit/os/scratch.h"

#include <chrono>
#include <thread>

#include <dlfcn.h>
#include <fmt/core.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

using namespace sentry_prof;
using namespace sentry_prof::target;
using test::ScratchDirectory;

namespace {

namespace fs = std::filesystem;

// A copy of `sleep` that runs.
class RunningCopy {
 public:
  explicit RunningCopy(const std::string& path) : path_(path) {
    fs::copy_file(fs::canonical("/bin/sleep"), path);
    auto child = LaunchedChild::start({path, "1000"});
    REQUIRE(child);
    REQUIRE(child->release() == 0);
    child_.emplace(std::move(*child));
  }
  ~RunningCopy() {
    ::kill(child_->pid(), SIGKILL);
    CHECK(child_->wait());
  }
  int pid() const { return child_->pid(); }

  MappingFacts code() const {
    const auto snapshot = read_process(pid());
    REQUIRE(snapshot);
    for (const MappingFacts& mapping : snapshot->mappings) {
      if (mapping.path.starts_with(path_)) return mapping;
    }
    FAIL("the copy is not mapped");
    return {};
  }

 private:
  std::string path_;
  std::optional<LaunchedChild> child_;
};

bool has_map_files() {
  struct stat status = {};
  const auto own = read_process(::getpid());
  if (!own) return false;
  for (const MappingFacts& mapping : own->mappings) {
    const std::string link = fmt::format("/proc/self/map_files/{:x}-{:x}", mapping.begin.value,
                                         mapping.begin.value + mapping.size_bytes);
    if (mapping.inode != 0) return ::stat(link.c_str(), &status) == 0;
  }
  return false;
}

// A mapping that map_files does not know, so that the path must do.
MappingFacts without_range(MappingFacts mapping) {
  mapping.begin.value += 0x1000;
  return mapping;
}

MappingFacts mapping_of_gone_process(const std::string& path) {
  MappingFacts mapping;
  mapping.pid = static_cast<uint32_t>(test::pid_that_is_gone());
  mapping.begin = {0x1000};
  mapping.size_bytes = 0x1000;
  mapping.path = path;
  return mapping;
}

}  // namespace

TEST_CASE("The opener opens the file of a mapping, by its range and by its path") {
  const ScratchDirectory scratch;
  const RunningCopy program(scratch / "program");
  const auto opener = make_proc_opener();
  const auto file = opener->open(program.code());
  REQUIRE(file);
  CHECK((*file)->size_bytes() == fs::file_size(scratch / "program"));
  const auto by_path = opener->open(without_range(program.code()));
  REQUIRE(by_path);
  CHECK((*by_path)->size_bytes() == fs::file_size(scratch / "program"));
}

TEST_CASE("The opener finds a deleted file that still runs") {
  if (!has_map_files()) {
    testing::note_skip("map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE");
    return;
  }
  const ScratchDirectory scratch;
  const RunningCopy program(scratch / "program");
  fs::remove(scratch / "program");
  const MappingFacts code = program.code();
  CHECK(code.path == (scratch / "program") + " (deleted)");
  const auto opener = make_proc_opener();
  const auto file = opener->open(code);
  REQUIRE(file);
  CHECK((*file)->size_bytes() == fs::file_size(fs::canonical("/bin/sleep")));
  CHECK_FALSE(opener->name_is_literal(code));

  ImageStore images(*opener);
  const auto image = images.image(images.module_for(code).image);
  REQUIRE(image);
  CHECK(image->path() == scratch / "program");
  CHECK_FALSE(image->is_known_by_name_only());
}

TEST_CASE("The opener finds a deleted or replaced program by its process if map_files is closed") {
  const ScratchDirectory scratch;
  const RunningCopy program(scratch / "program");
  const MappingFacts before = without_range(program.code());
  fs::remove(scratch / "program");
  const MappingFacts after = without_range(program.code());
  REQUIRE(after.path != before.path);
  test::write_text(scratch / "program", "something else");
  const auto opener = make_proc_opener();
  for (MappingFacts code : {before, after}) {
    const auto file = opener->open(code);
    REQUIRE(file);
    CHECK((*file)->size_bytes() == fs::file_size(fs::canonical("/bin/sleep")));
    code.inode = UINT64_MAX;  // as if the process ran another program by now
    CHECK_FALSE(opener->open(code));
  }
}

TEST_CASE("The opener finds a replaced program by its build id if map_files is closed") {
  const ScratchDirectory scratch;
  const RunningCopy program(scratch / "program");
  const auto opener = make_proc_opener();
  MappingFacts code = without_range(program.code());
  const auto whole = opener->open(code);
  REQUIRE(whole);
  const auto layout = elf::read_layout(**whole);
  REQUIRE(layout);
  code.build_id = elf::read_identity(**whole, *layout).build_id;
  if (code.build_id.empty()) {
    testing::note_optional_skip("sleep has no build id here");
    return;
  }
  fs::remove(scratch / "program");
  fs::copy_file(fs::canonical("/bin/cat"), scratch / "program");
  code.inode = 0;
  const auto file = opener->open(code);
  REQUIRE(file);
  CHECK((*file)->size_bytes() == (*whole)->size_bytes());
}

TEST_CASE("The opener takes (deleted) in a name for what it is") {
  const ScratchDirectory scratch;
  const RunningCopy program(scratch / "program (deleted)");
  const auto opener = make_proc_opener();
  ImageStore images(*opener);
  const auto image = images.image(images.module_for(program.code()).image);
  REQUIRE(image);
  CHECK(image->path() == scratch / "program (deleted)");
}

TEST_CASE("The opener does not take the file that replaced a mapped one") {
  const ScratchDirectory scratch;
  const RunningCopy program(scratch / "program");
  const MappingFacts code = program.code();
  fs::rename(scratch / "program", scratch / "moved");
  test::write_text(scratch / "program", "something else");
  const auto opener = make_proc_opener();
  const auto file = opener->open(without_range(code));
  REQUIRE_FALSE(file);
  CHECK(file.error().message == "another file has that name now");
}

TEST_CASE("The opener opens neither FIFOs nor devices nor directories in a file's place") {
  const ScratchDirectory scratch;
  const RunningCopy program(scratch / "program");
  MappingFacts code = without_range(program.code());
  code.inode = 0;  // nothing to compare
  const auto opener = make_proc_opener();
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0666) == 0);
  fs::create_symlink("/dev/zero", scratch / "zero");
  for (const char* name : {"fifo", "zero", ""}) {
    code.path = scratch / name;
    INFO(code.path);
    const auto file = opener->open(code);
    REQUIRE_FALSE(file);
    CHECK(file.error().code == ErrorCode::Unsupported);
  }
}

TEST_CASE("The opener follows no magic links") {
  const ScratchDirectory scratch;
  const RunningCopy program(scratch / "program");
  MappingFacts code = without_range(program.code());
  code.inode = 0;
  fs::create_symlink("/proc/self/exe", scratch / "magic");
  code.path = scratch / "magic";
  CHECK_FALSE(make_proc_opener()->open(code));
}

TEST_CASE("The opener reads as root only what the target's user can read") {
  if (::geteuid() != 0) {
    testing::note_skip("needs root");
    return;
  }
  const ScratchDirectory scratch;
  ::chmod(scratch.path().c_str(), 0755);
  test::write_text(scratch / "secret", "for root only");
  ::chmod((scratch / "secret").c_str(), 0600);
  test::write_text(scratch / "public", "for all");
  ::chmod((scratch / "public").c_str(), 0644);
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t pid = test::fork_child();
  if (pid == 0) {
    const bool is_nobody = ::setgid(65534) == 0 && ::setuid(65534) == 0;
    if (is_nobody && ::write(ready[1], "r", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  MappingFacts mapping;
  mapping.pid = static_cast<uint32_t>(pid);
  mapping.begin = {0x1000};
  mapping.size_bytes = 0x1000;
  const auto opener = make_proc_opener();
  mapping.path = scratch / "secret";
  const auto secret = opener->open(mapping);
  mapping.path = scratch / "public";
  const auto open_to_all = opener->open(mapping);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);

  REQUIRE_FALSE(secret);
  CHECK(secret.error().code == ErrorCode::PermissionDenied);
  CHECK(open_to_all);
  CHECK(test::read_text(scratch / "secret") == "for root only");  // our own rights are back
}

TEST_CASE("A file of a process that is gone is opened if its build id can be compared") {
  MappingFacts mapping = mapping_of_gone_process(fs::canonical("/bin/sleep"));
  const auto opener = make_proc_opener();
  CHECK(opener->open(mapping).error().code == ErrorCode::Gone);
  mapping.build_id = {std::byte{1}};
  CHECK(opener->open(mapping));
}

TEST_CASE("A file of a process that is gone is opened if it is the inode, and as it was") {
  const ScratchDirectory scratch;
  const std::string path = scratch / "program";
  const auto earlier_opener = make_proc_opener();
  test::write_text(path, "12345");
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  MappingFacts mapping = mapping_of_gone_process(path);
  mapping.inode = status.st_ino;
  mapping.device_major = major(status.st_dev);
  mapping.device_minor = minor(status.st_dev);
  // Times of files are those of the kernel's last tick.
  const auto wait_for_tick = [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  CHECK(earlier_opener->open(mapping).error().code == ErrorCode::Gone);
  wait_for_tick();
  const auto opener = make_proc_opener();
  CHECK(opener->open(mapping));
  MappingFacts other = mapping;
  ++other.inode;
  CHECK(opener->open(other).error().code == ErrorCode::Gone);
  other = mapping;
  ++other.device_minor;
  CHECK(opener->open(other).error().code == ErrorCode::Gone);
  wait_for_tick();
  test::write_text(path, "54321");
  CHECK(opener->open(mapping).error().code == ErrorCode::Gone);
}

TEST_CASE("The vdso is copied from this process, where its size is right") {
  const auto snapshot = read_process(::getpid());
  REQUIRE(snapshot);
  const auto vdso = std::find_if(snapshot->mappings.begin(), snapshot->mappings.end(),
                                 [](const MappingFacts& m) { return m.path == kVdsoPath; });
  if (vdso == snapshot->mappings.end()) {
    testing::note_optional_skip("this kernel maps no vdso");
    return;
  }
  const auto opener = make_proc_opener();
  ImageStore images(*opener);
  const unwind::Module module = images.module_for(*vdso);
  REQUIRE(module.cfi != nullptr);
  const auto image = images.image(module.image);
  CHECK(image->path() == "[vdso]");
  CHECK(image->first_seen().value == ::getauxval(AT_SYSINFO_EHDR));
  CHECK_FALSE(image->identity().debug_id.is_nil());
  MappingFacts of_32_bits = *vdso;
  of_32_bits.size_bytes += 0x1000;
  CHECK_FALSE(opener->open(of_32_bits));
}

TEST_CASE("An image loads its CFI when the first row is asked for") {
  const auto opener = make_proc_opener();
  ImageStore images(*opener);
  ProcessTable processes(images);
  const auto snapshot = read_process(::getpid());
  REQUIRE(snapshot);
  processes.on_snapshot(*snapshot);
  const RuntimeAddress here{reinterpret_cast<uint64_t>(&has_map_files) + 1};
  const unwind::Module* module = processes.process(snapshot->pid).modules.find(here);
  REQUIRE(module != nullptr);
  REQUIRE(module->cfi != nullptr);
  const auto image = images.image(module->image);
  unwind::Row row;
  CHECK(image->row_at(to_link(here, module->bias), row) == unwind::RowStatus::Found);
  CHECK(row.begin <= to_link(here, module->bias));
  CHECK(to_link(here, module->bias) < row.end);
  CHECK(image->cfi_error().empty());
}
