// A file of this very process that was deleted, read as it is mapped.
#include "target/mapped_file.h"

#include "support/catch2.h"
#include "target/target_files.h"
#include "unit/os/scratch.h"

#include <filesystem>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

using namespace sentry_prof;
using target::MappedFile;
using target::MappingFacts;

namespace {

constexpr size_t kPage_bytes = 4096;

std::string page_of(char letter) { return std::string(kPage_bytes, letter); }

// A deleted file of pages of letters, of which 'b' is executable, 'a' and 'e' may be read, 'c' may
// be written to, and 'd' is not there.
class DeletedFile {
 public:
  DeletedFile() {
    const std::string path = scratch_ / "library";
    test::write_text(path, page_of('a') + page_of('b') + page_of('c') + page_of('d') +
                               page_of('e') + page_of('f'));
    file_ = os::Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    void* const place = ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, file_.get(), 0);
    REQUIRE(place != MAP_FAILED);
    begin_ = static_cast<char*>(place);
    REQUIRE(::mprotect(begin_ + kPage_bytes, kPage_bytes, PROT_READ | PROT_EXEC) == 0);
    char* const data = begin_ + 2 * kPage_bytes;
    REQUIRE(::mprotect(data, kPage_bytes, PROT_READ | PROT_WRITE) == 0);
    *data = 'C';
    REQUIRE(::munmap(begin_ + 3 * kPage_bytes, kPage_bytes) == 0);
    std::filesystem::remove(path);
  }
  DeletedFile(const DeletedFile&) = delete;
  DeletedFile& operator=(const DeletedFile&) = delete;
  ~DeletedFile() { ::munmap(begin_, kBytes); }

  MappingFacts code() const {
    const auto self = target::read_process(::getpid());
    REQUIRE(self);
    for (const MappingFacts& mapping : self->mappings) {
      if (mapping.path.starts_with(scratch_ / "library")) return mapping;
    }
    FAIL("the file is not mapped");
    return {};
  }
  // Another file of that name, from the same offset.
  void put_other_file_there() const {
    const std::string path = scratch_ / "library";
    test::write_text(path, page_of('A') + page_of('B'));
    const os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::mmap(begin_, 2 * kPage_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
                   file.get(), 0) == begin_);
  }
  // As if its inode's number were another file's by now.
  void write_other_head() const { REQUIRE(::pwrite(file_.get(), "another", 7, 0) == 7); }
  void put_other_memory_there() const {
    REQUIRE(::mmap(begin_, 2 * kPage_bytes, PROT_READ | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == begin_);
  }

 private:
  static constexpr size_t kBytes = 5 * kPage_bytes;  // of six

  test::ScratchDirectory scratch_;
  os::Fd file_;
  char* begin_ = nullptr;
};

std::string read(const ByteSource& source, uint64_t offset, size_t size_bytes) {
  std::string text(size_bytes, '?');
  return source.read_at(offset, std::as_writable_bytes(std::span(text))) ? text : "";
}

}  // namespace

TEST_CASE("A deleted file is read where it is mapped, but for what may have been written to") {
  const DeletedFile deleted;
  const auto opened = MappedFile::open(deleted.code());
  REQUIRE(opened);
  const ByteSource& file = **opened;
  REQUIRE(file.size_bytes() == 5 * kPage_bytes);
  CHECK(read(file, 0, file.size_bytes()) ==
        page_of('a') + page_of('b') + page_of('\0') + page_of('\0') + page_of('e'));
  CHECK(read(file, kPage_bytes - 2, 4) == "aabb");
  CHECK(read(file, 5 * kPage_bytes - 1, 1) == "e");
  CHECK(read(file, 2 * kPage_bytes, 2 * kPage_bytes).empty());
  CHECK(read(file, 5 * kPage_bytes - 1, 2).empty());
  CHECK(read(file, UINT64_MAX, 2).empty());
  CHECK(file.is_unchanged());
  CHECK_FALSE(file.was_changed());
}

TEST_CASE("Of a deleted file nothing is read once something else is mapped in its place") {
  const DeletedFile deleted;
  const MappingFacts code = deleted.code();
  const auto opened = MappedFile::open(code);
  REQUIRE(opened);
  deleted.put_other_memory_there();
  CHECK_FALSE((*opened)->is_unchanged());
  CHECK((*opened)->was_changed());
  CHECK(read(**opened, 0, 1).empty());
  CHECK_FALSE(MappedFile::open(code));
}

TEST_CASE("Of a deleted file nothing is read of another file in its place") {
  const DeletedFile deleted;
  MappingFacts code = deleted.code();
  if (GENERATE(false, true)) {
    code.build_id.resize(20);
    code.inode = 0;
  }
  const auto opened = MappedFile::open(code);
  REQUIRE(opened);
  CHECK(read(**opened, 0, 1) == "a");
  SECTION("of the same name") { deleted.put_other_file_there(); }
  SECTION("of the same number") { deleted.write_other_head(); }
  CHECK(read(**opened, kPage_bytes, 1).empty());
  CHECK((*opened)->was_changed());
  CHECK_FALSE((*opened)->is_unchanged());
}

TEST_CASE("Deleted files are read by who waits for them, each with its own bytes") {
  // A helper is no parent of ours (Yama's ptrace_scope 1).
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  const DeletedFile first, second;
  const auto files = target::TargetFiles::start();
  REQUIRE(files);
  const auto opener = (*files)->make_opener();
  MappingFacts moved = second.code();
  moved.begin.value -= kPage_bytes;
  moved.file_offset -= kPage_bytes;
  const auto one = opener->open_mapped(first.code());
  const auto other = opener->open_mapped(moved);
  REQUIRE(one);
  REQUIRE(other);
  first.put_other_memory_there();
  CHECK_FALSE((*one)->is_unchanged());
  CHECK((*one)->was_changed());
  CHECK((*other)->is_unchanged());
  CHECK(read(**other, 4 * kPage_bytes, 1) == "e");
  MappingFacts ended = second.code();
  ended.pid = 4'194'303;
  CHECK_FALSE(opener->open_mapped(ended));
}
