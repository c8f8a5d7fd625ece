#include "target/image_store.h"

#include "base/hex.h"
#include "support/catch2.h"
#include "unit/target/fake_opener.h"

#include <algorithm>
#include <array>

using namespace sentry_prof;
using namespace sentry_prof::test;
using target::ImageStore;
using unwind::kNoImage;
using unwind::Module;

TEST_CASE("ImageStore gives the bias and identity of a mapped library") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(1));
  ImageStore images(opener);
  const Module module = images.module_for(code_of("/lib/a.so", 0x7000'0000));
  CHECK(module.begin == RuntimeAddress{0x7000'0000});
  CHECK(module.end == RuntimeAddress{0x7000'1000});
  CHECK(module.bias == LoadBias{0x7000'0000 - 0x3000});
  REQUIRE(module.image != kNoImage);
  const auto image = images.image(module.image);
  REQUIRE(image);
  CHECK(module.cfi == image.get());
  CHECK(image->id() == module.image);
  CHECK(image->path() == "/lib/a.so");
  CHECK(image->identity().build_id == build_id_of(1));
  CHECK(image->first_seen() == RuntimeAddress{0x7000'0000 - 0x3000 + 0x1000});
  CHECK(image->size_in_memory_bytes() == 0x3000);
  CHECK(images.problems().empty());
}

TEST_CASE("an image gives its code, and nothing but its code") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(1));
  ImageStore images(opener);
  const Module module = images.module_for(code_of("/lib/a.so", 0x7000'0000));
  const auto image = images.image(module.image);
  REQUIRE(image);
  CHECK(module.code == image.get());
  const auto& segments = image->layout().segments;
  const auto code = std::find_if(segments.begin(), segments.end(),
                                 [](const auto& segment) { return segment.is_executable; });
  REQUIRE(code != segments.end());
  const LinkAddress end{code->vaddr.value + code->file_bytes};
  std::array<std::byte, 4> found{}, expected{};
  REQUIRE(image->file().read_at(code->file_offset + code->file_bytes - 4, expected));
  CHECK(image->read_code({end.value - 4}, found));
  CHECK(found == expected);
  CHECK_FALSE(image->read_code({end.value - 3}, found));
  CHECK_FALSE(image->read_code({code->vaddr.value - 1}, found));
  CHECK_FALSE(image->read_code({UINT64_MAX - 1}, found));
}

TEST_CASE("ImageStore opens a file once for all processes that map it") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library({});
  opener.files["/lib/b.so"] = make_library(build_id_of(2));
  ImageStore images(opener);
  const Module a = images.module_for(code_of("/lib/a.so", 0x1000'0000));
  const Module again = images.module_for(code_of("/lib/a.so", 0x2000'0000));
  CHECK(a.image == again.image);
  CHECK(again.bias == LoadBias{0x2000'0000 - 0x3000});
  const Module b = images.module_for(code_of("/lib/b.so", 0x3000'0000, 0, build_id_of(2)));
  CHECK(b.image != a.image);
  CHECK(images.module_for(code_of("/elsewhere", 0x4000'0000, 0, build_id_of(2))).image == b.image);
  CHECK(opener.opened == std::vector<std::string>{"/lib/a.so", "/lib/b.so", "/elsewhere"});
  CHECK(images.images_seen() == 2);
}

TEST_CASE("ImageStore tells files apart that have a build id in common, and no more") {
  FakeOpener opener;
  opener.files["/app"] = make_library(build_id_of(1));
  opener.files["/copy"] = make_library(build_id_of(1));
  opener.files["/patched"] = make_library(build_id_of(1), {}, {}, 0x800);
  ImageStore images(opener);
  const auto image_of = [&](const char* path) {
    return images.module_for(code_of(path, 0x1000'0000, 0, build_id_of(1))).image;
  };
  const unwind::ImageId app = image_of("/app");
  CHECK(image_of("/copy") == app);
  const unwind::ImageId patched = image_of("/patched");
  CHECK(patched != app);
  CHECK(images.image(patched)->path() == "/patched");
  CHECK(image_of("/app") == app);
  CHECK(image_of("/patched") == patched);
}

TEST_CASE(
    "ImageStore takes the file of another name with that build id only until it has its own") {
  FakeOpener opener;
  opener.files["/app"] = make_library(build_id_of(1));
  opener.files["/patched"] = make_library(build_id_of(1), {}, {}, 0x800);
  ImageStore images(opener);
  const Module app = images.module_for(code_of("/app", 0x1000'0000, 0, build_id_of(1)));
  target::MappingFacts patched = code_of("/patched", 0x1000'0000, 0, build_id_of(1));
  opener.ended = {patched.pid};
  CHECK(images.module_for(patched).image == app.image);
  patched.pid += 1;
  CHECK(images.module_for(patched).image != app.image);
}

TEST_CASE("ImageStore knows a build id that the kernel cut to twenty bytes") {
  FakeOpener opener;
  const std::vector<std::byte> of_file(32, std::byte{7});
  opener.files["/app"] = make_library(of_file);
  ImageStore images(opener);
  std::vector<std::byte> of_kernel(20, std::byte{7});
  SECTION("of this file") {
    const Module module = images.module_for(code_of("/app", 0x1000'0000, 0, of_kernel));
    REQUIRE(module.image != kNoImage);
    CHECK(images.image(module.image)->identity().build_id == of_file);
  }
  SECTION("of another") {
    of_kernel.back() = std::byte{8};
    const Module module = images.module_for(code_of("/app", 0x1000'0000, 0, of_kernel));
    CHECK(images.image(module.image)->is_known_by_name_only());
  }
}

TEST_CASE("An ELF file without loadable segments is known by name: it says nothing of addresses") {
  FakeOpener opener;
  opener.files["/lib/a.o"] =
      ElfBuilder({.type = ET_REL}).section({.name = ".text", .contents = build_id_of(1)}).build();
  ImageStore images(opener);
  const auto image = images.image(images.module_for(code_of("/lib/a.o", 0x1000'0000, 1)).image);
  REQUIRE(image);
  CHECK(image->is_known_by_name_only());
  CHECK(image->identity().debug_id.is_nil());
  CHECK(images.problems().size() == 1);
}

TEST_CASE("ImageStore knows an image from maps and from a record with build id as one") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(3));
  ImageStore images(opener);
  SECTION("maps first") {
    const Module from_maps = images.module_for(code_of("/lib/a.so", 0x1000'0000, 7));
    CHECK(images.module_for(code_of("/lib/a.so", 0x2000'0000, 0, build_id_of(3))).image ==
          from_maps.image);
    CHECK(opener.opened.size() == 2);
  }
  SECTION("record first") {
    const Module from_record =
        images.module_for(code_of("/lib/a.so", 0x1000'0000, 0, build_id_of(3)));
    CHECK(images.module_for(code_of("/lib/a.so", 0x2000'0000, 7)).image == from_record.image);
  }
  CHECK(images.images_seen() == 1);
}

TEST_CASE("ImageStore tells files of one path apart by their inode") {
  FakeOpener opener;
  opener.files["/app"] = make_library(build_id_of(1));
  ImageStore images(opener);
  const Module first = images.module_for(code_of("/app", 0x1000'0000, 7));
  opener.files["/app"] = make_library(build_id_of(2));
  const Module second = images.module_for(code_of("/app", 0x1000'0000, 8));
  CHECK(first.image != second.image);
  CHECK(images.image(second.image)->identity().build_id == build_id_of(2));
}

TEST_CASE("ImageStore does not use a file whose build id is not the one that is mapped") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(9));
  ImageStore images(opener);
  const Module module = images.module_for(code_of("/lib/a.so", 0x1000'0000, 0, build_id_of(1)));
  REQUIRE(module.image != kNoImage);
  CHECK(module.cfi == nullptr);
  CHECK(module.bias == LoadBias{0x1000'0000 - 0x1000});  // link addresses are file offsets
  const auto image = images.image(module.image);
  CHECK(image->is_known_by_name_only());
  CHECK(image->path() == "/lib/a.so");
  CHECK(image->identity().build_id == build_id_of(1));
  CHECK(image->identity().code_id == to_hex(build_id_of(1)));
  CHECK(image->identity().debug_id.is_nil());  // addresses that are not known need no names
  CHECK(image->first_seen() == RuntimeAddress{0x1000'0000 - 0x1000});
  CHECK(image->size_in_memory_bytes() == 0x2000);
  CHECK(image->file().size_bytes() == 0);
  unwind::Row row;
  CHECK(image->row_at({0x1800}, row) == unwind::RowStatus::NoCfi);
  CHECK(images.problems() ==
        std::vector<std::string>{"/lib/a.so: the file was replaced since it was mapped"});
}

TEST_CASE("ImageStore finds a file by name where another one was mapped in its place meanwhile") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(1));
  opener.files_in_place[0x1000'0000] = make_library(build_id_of(2));
  ImageStore images(opener);
  const Module module = images.module_for(code_of("/lib/a.so", 0x1000'0000, 0, build_id_of(1)));
  REQUIRE(module.image != kNoImage);
  CHECK(module.cfi != nullptr);
  CHECK(images.image(module.image)->identity().build_id == build_id_of(1));
  CHECK(images.problems().empty());
}

TEST_CASE("ImageStore keeps a name that ends in (deleted) if it is the file's own") {
  FakeOpener opener;
  opener.files["/opt/x (deleted)"] = make_library(build_id_of(1));
  opener.files["/opt/y (deleted)"] = make_library(build_id_of(2));
  opener.literal_names = {"/opt/x (deleted)"};
  ImageStore images(opener);
  const Module x = images.module_for(code_of("/opt/x (deleted)", 0x1000'0000, 7));
  const Module y = images.module_for(code_of("/opt/y (deleted)", 0x2000'0000, 8));
  CHECK(images.image(x.image)->path() == "/opt/x (deleted)");
  CHECK(images.image(y.image)->path() == "/opt/y");
}

TEST_CASE("ImageStore opens nothing for memory without a file") {
  FakeOpener opener;
  ImageStore images(opener);
  for (const char* path : {"", "//anon", "[heap]", "[anon:jit]", "/dev/zero", "[vsyscall]"}) {
    const Module module = images.module_for(code_of(path, 0x1000'0000));
    CHECK(module.image == kNoImage);
    CHECK(module.cfi == nullptr);
    CHECK(module.end == RuntimeAddress{0x1000'1000});
  }
  CHECK(opener.opened.empty());
  CHECK(images.problems().empty());
}

TEST_CASE("ImageStore takes a memory file that is no ELF for anonymous memory") {
  FakeOpener opener;
  opener.files["/memfd:jit (deleted)"] = to_bytes("no ELF");
  opener.files["/memfd:lib (deleted)"] = make_library(build_id_of(1));
  ImageStore images(opener);
  CHECK(images.module_for(code_of("/memfd:jit (deleted)", 0x1000'0000, 7)).image == kNoImage);
  const Module library = images.module_for(code_of("/memfd:lib (deleted)", 0x2000'0000, 8));
  REQUIRE(library.image != kNoImage);
  CHECK(images.image(library.image)->path() == "/memfd:lib");
  CHECK(images.problems().empty());
}

TEST_CASE("ImageStore names a mapped file that is no ELF and opens it once") {
  FakeOpener opener;
  opener.files["/opt/wine/user32.dll"] = to_bytes("MZ and so on");
  ImageStore images(opener);
  const Module module = images.module_for(code_of("/opt/wine/user32.dll", 0x1000'0000));
  REQUIRE(module.image != kNoImage);
  CHECK(images.image(module.image)->is_known_by_name_only());
  images.module_for(code_of("/opt/wine/user32.dll", 0x2000'0000));
  CHECK(opener.opened.size() == 1);
}

TEST_CASE("ImageStore gives no image to a mapping that the file's segments cannot explain") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(1));
  ImageStore images(opener);
  auto odd = code_of("/lib/a.so", 0x1000'0000);
  odd.file_offset = 0x50'0000;
  CHECK(images.module_for(odd).image == kNoImage);
  CHECK(images.problems().size() == 1);
  CHECK(images.module_for(code_of("/lib/a.so", 0x2000'0000)).image != kNoImage);
}

TEST_CASE("ImageStore survives mappings at the end of the address space") {
  FakeOpener opener;
  ImageStore images(opener);
  auto last = code_of("", UINT64_MAX - 0xfff);
  last.size_bytes = UINT64_MAX;
  const Module module = images.module_for(last);
  CHECK(module.begin < module.end);
  CHECK(module.end == RuntimeAddress{UINT64_MAX});
}

TEST_CASE("ImageStore has one vdso for all processes") {
  FakeOpener opener;
  opener.files["[vdso]"] = make_library({});
  ImageStore images(opener);
  auto vdso = code_of("[vdso]", 0x1000'0000, 0);
  const Module first = images.module_for(vdso);
  vdso.pid = 200;
  CHECK(images.module_for(vdso).image == first.image);
  CHECK(images.image(first.image)->path() == "[vdso]");
  CHECK(opener.opened.size() == 1);
}

TEST_CASE("ImageStore remembers a bounded number of problems") {
  FakeOpener opener;
  ImageStore images(opener);
  for (uint64_t i = 0; i < ImageStore::kMaxProblems + 100; ++i) {
    images.module_for(code_of("/lib/" + std::to_string(i), 0x1000'0000, i + 1));
  }
  CHECK(images.problems().size() == ImageStore::kMaxProblems);
}

TEST_CASE("ImageStore does not know numbers that it never gave") {
  FakeOpener opener;
  const ImageStore images(opener);
  CHECK(images.image(0) == nullptr);
  CHECK(images.image(kNoImage) == nullptr);
}

namespace {

constexpr uint64_t kCfi_bytes = 4096;

// A library with that much .debug_frame, all of it one entry that is of no use.
std::vector<std::byte> library_with_cfi(uint8_t first_of_build_id) {
  std::vector<std::byte> frames(kCfi_bytes, std::byte{0});
  frames[0] = std::byte{(kCfi_bytes - 4) & 0xff};
  frames[1] = std::byte{(kCfi_bytes - 4) >> 8};
  return make_library(build_id_of(first_of_build_id), frames);
}

}  // namespace

TEST_CASE("ImageStore keeps no more unwind information than it may, and says of which image") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = library_with_cfi(1);
  opener.files["/lib/b.so"] = library_with_cfi(2);
  ImageStore images(opener, {.bytes_left = kCfi_bytes * 3 / 2});
  const auto a = images.image(images.module_for(code_of("/lib/a.so", 0x1000'0000, 1)).image);
  const auto b = images.image(images.module_for(code_of("/lib/b.so", 0x2000'0000, 2)).image);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(images.problems().empty());
  unwind::Row row;
  for (int i = 0; i < 2; ++i) {
    CHECK(a->row_at({0x3000}, row) == unwind::RowStatus::NoCfi);
    CHECK(b->row_at({0x3000}, row) == unwind::RowStatus::NoCfi);
  }
  CHECK(a->cfi_error().empty());
  CHECK(b->cfi_error().starts_with(".debug_frame is larger than"));
  CHECK(images.problems() ==
        std::vector<std::string>{"/lib/b.so: no unwind information: " + b->cfi_error()});
}

TEST_CASE("ImageStore gives unwind information back that it cannot keep") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = library_with_cfi(1);
  opener.files["/lib/b.so"] = library_with_cfi(2);
  ImageStore images(opener, {.bytes_left = kCfi_bytes + 1});  // not for the table itself
  for (const char* path : {"/lib/a.so", "/lib/b.so"}) {
    const auto image = images.image(images.module_for(code_of(path, 0x1000'0000, 1)).image);
    REQUIRE(image);
    unwind::Row row;
    CHECK(image->row_at({0x3000}, row) == unwind::RowStatus::NoCfi);
    CHECK(image->cfi_error().starts_with("its tables are larger"));
  }
}

namespace {

// As make_library() lays them out: code at link address 0x3000, file offset 0x1000.
std::vector<std::byte> library_of(ElfKind kind, const std::vector<uint32_t>& code) {
  ByteWriter text;
  for (const uint32_t instruction : code) text.u32(instruction);
  ElfBuilder elf(kind);
  elf.section({.name = ".text",
               .flags = SHF_ALLOC | SHF_EXECINSTR,
               .address = 0x3000,
               .contents = text.zeros_until(0x1000).bytes(),
               .file_offset = 0x1000});
  elf.segment({.flags = PF_R | PF_X,
               .file_offset = 0x1000,
               .vaddr = 0x3000,
               .file_bytes = 0x1000,
               .memory_bytes = 0x1000});
  return elf.build();
}

constexpr uint32_t kMovX8RtSigreturn = 0xd2801168, kSvc0 = 0xd4000001;

}  // namespace

TEST_CASE("ImageStore knows where aarch64's signal handlers return to, though no CFI says so") {
  FakeOpener opener;
  opener.files["/lib/vdso.so"] =
      library_of({.machine = EM_AARCH64}, {0, kMovX8RtSigreturn, kSvc0, 0});
  ImageStore images(opener);
  const auto image = images.image(images.module_for(code_of("/lib/vdso.so", 0x1000'0000)).image);
  REQUIRE(image);
  unwind::Row row;
  CHECK(image->row_at({0x3003}, row) == unwind::RowStatus::Found);
  CHECK(row.is_signal_frame);
  CHECK(image->row_at({0x3010}, row) == unwind::RowStatus::NoCfi);
}

TEST_CASE("ImageStore uses no unwind information of a big-endian image, and says so") {
  FakeOpener opener;
  opener.files["/lib/big.so"] = library_of({.machine = EM_AARCH64, .order = std::endian::big}, {0});
  ImageStore images(opener);
  const auto image = images.image(images.module_for(code_of("/lib/big.so", 0x1000'0000)).image);
  REQUIRE(image);
  unwind::Row row;
  CHECK(image->row_at({0x3000}, row) == unwind::RowStatus::NoCfi);
  CHECK(image->cfi_error().starts_with("it is big-endian"));
}
