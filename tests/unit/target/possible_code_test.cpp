// Memory without a file in the place of an image's code.
#include "support/catch2.h"
#include "target/image_store.h"
#include "target/process_table.h"
#include "unit/target/fake_opener.h"

using namespace sentry_prof;
using namespace sentry_prof::test;
using target::MappingFacts;

namespace {

constexpr uint32_t kCopier = 100;
constexpr uint64_t kBase = 0x7f0000000000;  // the bias
constexpr uint64_t kCodeBegin = kBase + 0x3000;
constexpr uint64_t kCodeEnd = kBase + 0xb000;   // of the pages
constexpr uint64_t kBytesEnd = kBase + 0xa800;  // of what the file has
constexpr const char* kPath = "/lib/libcopied.so";

// A library with more code than one page, so that a piece of it can be replaced.
std::vector<std::byte> library_of_eight_pages() {
  ElfBuilder elf;
  elf.section({.name = ".text",
               .flags = SHF_ALLOC | SHF_EXECINSTR,
               .address = 0x3000,
               .contents = std::vector<std::byte>(kBytesEnd - kCodeBegin, std::byte{0x90}),
               .alignment = 16,
               .file_offset = 0x1000});
  elf.segment({.flags = PF_R, .vaddr = 0x2000, .file_bytes = 0x400, .memory_bytes = 0x400});
  elf.segment({.flags = PF_R | PF_X,
               .file_offset = 0x1000,
               .vaddr = 0x3000,
               .file_bytes = kBytesEnd - kCodeBegin,
               .memory_bytes = kBytesEnd - kCodeBegin});
  return elf.build();
}

MappingFacts piece(uint64_t begin, uint64_t end, const char* path) {
  MappingFacts mapping;
  mapping.pid = kCopier;
  mapping.begin = {begin};
  mapping.size_bytes = end - begin;
  mapping.path = path;
  if (path != kPath) return mapping;
  mapping.file_offset = begin - kCodeBegin + 0x1000;
  mapping.inode = 7;
  return mapping;
}

MappingFacts piece_of_file(uint64_t begin, uint64_t end) { return piece(begin, end, kPath); }
MappingFacts piece_without_file(uint64_t begin, uint64_t end) {
  return piece(begin, end, "//anon");
}

struct Copier {
  FakeOpener opener;
  target::ImageStore images{opener};
  target::ProcessTable processes{images};
  uint64_t time_ns = 1;

  Copier() { opener.files[kPath] = library_of_eight_pages(); }

  void map(const MappingFacts& mapping) { processes.on_map(++time_ns, mapping); }
  void attach(std::vector<MappingFacts> mappings, std::vector<MappingFacts> data = {}) {
    target::ProcessSnapshot snapshot;
    snapshot.pid = kCopier;
    snapshot.mappings = std::move(mappings);
    snapshot.data_below_code = std::move(data);
    snapshot.taken_at_ns = ++time_ns;
    processes.on_snapshot(snapshot);
  }
  std::vector<unwind::Module> possible(uint32_t pid = kCopier) {
    std::vector<unwind::Module> result;
    for (const unwind::Module& code : processes.process(pid).possible_code.modules()) {
      if (code.image != unwind::kNoImage) result.push_back(code);
    }
    return result;
  }
  const unwind::Module& module_at(uint64_t address) {
    const unwind::Module* const module = processes.process(kCopier).modules.find({address});
    REQUIRE(module != nullptr);
    return *module;
  }
};

void check_is_of_library(const unwind::Module& code, uint64_t begin, uint64_t end) {
  CHECK(code.begin == RuntimeAddress{begin});
  CHECK(code.end == RuntimeAddress{end});
  CHECK(code.bias == LoadBias{kBase});
  CHECK(code.cfi != nullptr);
  CHECK(code.code != nullptr);
}

}  // namespace

TEST_CASE("Memory between pieces of an image may be its code") {
  Copier copier;
  copier.attach({piece_of_file(kCodeBegin, kCodeBegin + 0x1000),
                 piece_without_file(kCodeBegin + 0x1000, kCodeBegin + 0x3000),
                 piece_of_file(kCodeBegin + 0x3000, kCodeEnd)});
  REQUIRE(copier.possible().size() == 1);
  check_is_of_library(copier.possible()[0], kCodeBegin + 0x1000, kCodeBegin + 0x3000);
  CHECK(copier.module_at(kCodeBegin + 0x1000).image == unwind::kNoImage);

  copier.processes.on_proven_code(kCopier, copier.possible()[0]);
  CHECK(copier.possible().empty());
  CHECK(copier.module_at(kCodeBegin + 0x1000).image == copier.module_at(kCodeBegin).image);
  CHECK(copier.module_at(kCodeBegin + 0x1000).bias == LoadBias{kBase});
}

TEST_CASE("Memory below or above the rest of an image's code may be its code") {
  Copier copier;
  SECTION("below") {
    copier.attach({piece_without_file(kCodeBegin, kCodeBegin + 0x1000),
                   piece_of_file(kCodeBegin + 0x1000, kCodeEnd)});
    REQUIRE(copier.possible().size() == 1);
    check_is_of_library(copier.possible()[0], kCodeBegin, kCodeBegin + 0x1000);
  }
  SECTION("above, up to the end of the file's bytes") {
    copier.attach({piece_of_file(kCodeBegin, kCodeEnd - 0x1000),
                   piece_without_file(kCodeEnd - 0x1000, kCodeEnd)});
    REQUIRE(copier.possible().size() == 1);
    check_is_of_library(copier.possible()[0], kCodeEnd - 0x1000, kBytesEnd);
  }
  SECTION("in two parts") {
    copier.attach({piece_of_file(kCodeBegin, kCodeEnd - 0x2000),
                   piece_without_file(kCodeEnd - 0x2000, kCodeEnd - 0x1000),
                   piece_without_file(kCodeEnd - 0x1000, kCodeEnd)});
    CHECK(copier.possible().size() == 2);
  }
}

TEST_CASE("Memory that a record puts over an image's code may be its code") {
  Copier copier;
  copier.map(piece_of_file(kCodeBegin, kCodeEnd));
  CHECK(copier.possible().empty());
  const uint64_t begin = GENERATE(values<uint64_t>({kCodeBegin, kCodeBegin + 0x2000}));
  copier.map(piece_without_file(begin, kCodeEnd));
  copier.map(piece_without_file(begin, kCodeEnd));  // by mprotect
  REQUIRE(copier.possible().size() == 1);
  check_is_of_library(copier.possible()[0], begin, kBytesEnd);

  SECTION("once more after it was proven") {
    copier.processes.on_proven_code(kCopier, copier.possible()[0]);
    copier.map(piece_without_file(begin, kCodeEnd));
    CHECK(copier.possible().size() == 1);
    CHECK(copier.module_at(begin).image == unwind::kNoImage);
  }
  SECTION("what is left of it where something else is mapped over a part") {
    copier.map(piece_of_file(kCodeEnd - 0x2000, kCodeEnd - 0x1000));
    REQUIRE(copier.possible().size() == 2);
    check_is_of_library(copier.possible()[0], begin, kCodeEnd - 0x2000);
    check_is_of_library(copier.possible()[1], kCodeEnd - 0x1000, kBytesEnd);
  }
  SECTION("of children, too") {
    copier.processes.on_fork(200, 200, kCopier, kCopier, ++copier.time_ns);
    CHECK(copier.possible(200).size() == 1);
  }
  SECTION("until a file is mapped there") {
    copier.map(piece_of_file(begin, kCodeEnd));
    CHECK(copier.possible().empty());
  }
  SECTION("until another program is") {
    copier.processes.on_comm(kCopier, kCopier, "other", true, ++copier.time_ns);
    CHECK(copier.possible().empty());
  }
  SECTION("and the image is mapped") {
    const auto mapped = copier.processes.mapped_images();
    CHECK(mapped.contains(copier.possible()[0].image));
  }
}

TEST_CASE("Memory in the place of all code of a library is known by the data below it") {
  Copier copier;
  MappingFacts data = piece_of_file(kBase + 0x2000, kCodeBegin);
  data.file_offset = 0;
  copier.attach({piece_without_file(kCodeBegin, kCodeEnd)}, {data});
  REQUIRE(copier.possible().size() == 1);
  check_is_of_library(copier.possible()[0], kCodeBegin, kBytesEnd);
}

TEST_CASE(
    "Code that was compiled beside a library, or is more than it had there, is not its code") {
  Copier copier;
  SECTION("above") {
    copier.attach(
        {piece_of_file(kCodeBegin, kCodeEnd), piece_without_file(kCodeEnd, kCodeEnd + 0x1000)});
  }
  SECTION("below") {
    copier.attach(
        {piece_without_file(kCodeBegin - 0x1000, kCodeBegin), piece_of_file(kCodeBegin, kCodeEnd)});
  }
  SECTION("from within on") {
    copier.attach({piece_of_file(kCodeBegin, kCodeEnd - 0x1000),
                   piece_without_file(kCodeEnd - 0x1000, kCodeEnd + 0x1000)});
  }
  SECTION("above its data") {
    MappingFacts data = piece_of_file(kBase + 0x2000, kCodeBegin);
    data.file_offset = 0;
    copier.attach({piece_without_file(kCodeBegin, kCodeEnd + 0x1000)}, {data});
  }
  SECTION("a device, which may not be read") {
    copier.map(piece_of_file(kCodeBegin, kCodeEnd));
    copier.map(piece(kCodeBegin, kCodeEnd, "/dev/gpu"));
  }
  CHECK(copier.possible().empty());
}

TEST_CASE("Of more possible copies than programs make all are forgotten") {
  Copier copier;
  for (uint64_t i = 0; i <= target::ProcessTable::kMaxPossibleCode; ++i) {
    CHECK(copier.possible().size() == i);
    CHECK(copier.processes.forgotten_count() == 0);
    const uint64_t place = i * 0x100000;
    MappingFacts code = piece_of_file(kCodeBegin, kCodeEnd);
    code.begin.value += place;
    copier.map(code);
    copier.map(piece_without_file(kCodeBegin + place, kCodeEnd + place));
  }
  CHECK(copier.possible().empty());
  CHECK(copier.processes.forgotten_count() == 1);
}
