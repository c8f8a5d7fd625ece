// Unwind information that an image has not loaded: compressed, in MiniDebugInfo, in a debug file.
#include "support/catch2.h"
#include "support/packed.h"
#include "target/image_store.h"
#include "unit/elf/cfi_builder.h"
#include "unit/target/fake_opener.h"

#include <algorithm>

using namespace sentry_prof;
using namespace sentry_prof::test;
using target::ImageStore;
using unwind::RowStatus;

namespace {

constexpr LinkAddress kFunction{0x3010};
const std::string kDebugFile =
    "/usr/lib/debug/.build-id/01/11111111111111111111111111111111111111.debug";

constexpr ElfKind kBigEndian{.machine = EM_AARCH64, .order = std::endian::big};

constexpr uint64_t kSecond_ns = 1'000'000'000;

std::vector<std::byte> debug_frame(std::endian order = std::endian::little) {
  elf_test::FrameBuilder frames({.is_eh_frame = false, .order = order});
  frames.cie({.augmentation = "", .augmentation_data = {}});
  frames.fde(kFunction.value, 0x10);
  return frames.sections().debug_frame.bytes;
}

// As make_library(), with one more section.
std::vector<std::byte> library_with(ElfSection section, ElfKind kind = {}, uint8_t id = 1) {
  ElfBuilder elf(kind);
  elf.section({.name = ".note.gnu.build-id",
               .type = SHT_NOTE,
               .contents = elf_note(kind.order, "GNU", NT_GNU_BUILD_ID, build_id_of(id)),
               .alignment = 4});
  elf.section(std::move(section));
  elf.segment({.flags = PF_R | PF_X,
               .file_offset = 0x1000,
               .vaddr = 0x3000,
               .file_bytes = 0,
               .memory_bytes = 0x1000});
  elf.section({.name = ".text",
               .flags = SHF_ALLOC | SHF_EXECINSTR,
               .address = 0x3000,
               .contents = std::vector<std::byte>(0x1000, std::byte{0x90}),
               .file_offset = 0x1000});
  elf.segment({.flags = PF_R | PF_X, .of_section = ".text"});
  return elf.build();
}

// Nobody answers reads of so many bytes while `silent_size_bytes` says so.
class HesitantFile final : public ByteSource {
 public:
  HesitantFile(std::vector<std::byte> bytes, const size_t& silent_size_bytes)
      : bytes_(std::move(bytes)), silent_size_bytes_(silent_size_bytes) {}
  uint64_t size_bytes() const override { return bytes_.size_bytes(); }
  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override {
    const bool is_silent = out.size() == silent_size_bytes_;
    was_silent_ |= is_silent;
    return !is_silent && bytes_.read_at(offset, out);
  }
  bool was_silent() const override { return was_silent_; }

 private:
  MemoryByteSource bytes_;
  const size_t& silent_size_bytes_;
  mutable bool was_silent_ = false;
};

// Of one file, under any name.
class HesitantOpener final : public target::ImageOpener {
 public:
  Result<std::shared_ptr<const ByteSource>> open(const target::MappingFacts&) override {
    return std::make_shared<HesitantFile>(file, silent_size_bytes);
  }
  Result<std::shared_ptr<const ByteSource>> open_by_path(
      const target::MappingFacts& mapping) override {
    return open(mapping);
  }
  Result<std::shared_ptr<const ByteSource>> open_mapped(
      const target::MappingFacts& mapping) override {
    return open(mapping);
  }

  std::vector<std::byte> file;
  size_t silent_size_bytes = SIZE_MAX;
};

struct OneImage {
  explicit OneImage(std::vector<std::byte> library) {
    opener.files["/lib/a.so"] = std::move(library);
  }

  RowStatus row_at(LinkAddress pc) {
    const auto module = images.module_for(code_of("/lib/a.so", 0x1000'0000));
    const auto image = images.image(module.image);
    REQUIRE(image);
    return image->row_at(pc, row);
  }

  FakeOpener opener;
  ImageStore images{opener};
  unwind::Row row;
};

}  // namespace

TEST_CASE("a debug file of the same build id gives the rows that the image has not") {
  OneImage world(make_library(build_id_of(1)));
  world.opener.files[kDebugFile] = make_library(build_id_of(1), debug_frame());
  CHECK(world.row_at(kFunction) == RowStatus::Found);
  CHECK(world.row_at({0x3020}) == RowStatus::NoCfi);
  CHECK(world.images.images_with_debug_cfi() == 1);
  CHECK(world.images.problems().empty());
}

TEST_CASE("a debug file is looked for in the process that mapped the image last") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(1));
  opener.files[kDebugFile] = make_library(build_id_of(1), debug_frame());
  ImageStore images(opener);
  target::MappingFacts mapping = code_of("/lib/a.so", 0x1000'0000);
  images.module_for(mapping);
  opener.ended = {mapping.pid};
  mapping.pid += 1;
  const auto image = images.image(images.module_for(mapping).image);
  unwind::Row row;
  CHECK(image->row_at(kFunction, row) == RowStatus::Found);
}

TEST_CASE("a debug file that nobody is left to look for is no problem, and found by the next") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(1));
  opener.files[kDebugFile] = make_library(build_id_of(1), debug_frame());
  ImageStore images(opener);
  target::MappingFacts mapping = code_of("/lib/a.so", 0x1000'0000);
  const auto image = images.image(images.module_for(mapping).image);
  opener.ended = {mapping.pid};
  unwind::Row row;
  CHECK(image->row_at(kFunction, row) == RowStatus::NoCfi);
  CHECK(images.problems().empty());
  opener.ended.clear();
  CHECK(image->row_at(kFunction, row) == RowStatus::NoCfi);  // each is asked once
  mapping.pid += 1;
  images.module_for(mapping);
  CHECK(image->row_at(kFunction, row) == RowStatus::Found);
}

TEST_CASE("a debug file of another build is not used, and told") {
  OneImage world(make_library(build_id_of(1)));
  world.opener.files[kDebugFile] = make_library(build_id_of(2), debug_frame());
  CHECK(world.row_at(kFunction) == RowStatus::NoCfi);
  CHECK(world.images.images_with_debug_cfi() == 0);
  CHECK(world.images.problems() ==
        std::vector<std::string>{"/lib/a.so: no unwind information of its debug data: the file was "
                                 "replaced since it was mapped"});
}

TEST_CASE("an image without debug file is no problem, and one without build id has none") {
  OneImage world(make_library(build_id_of(1)));
  CHECK(world.row_at(kFunction) == RowStatus::NoCfi);
  CHECK(world.images.problems().empty());
  OneImage nameless(make_library({}));
  nameless.opener.files[kDebugFile] = make_library({}, debug_frame());
  CHECK(nameless.row_at(kFunction) == RowStatus::NoCfi);
}

TEST_CASE("what an image covers itself is not looked up elsewhere") {
  OneImage world(make_library(build_id_of(1), debug_frame()));
  world.opener.files[kDebugFile] = make_library(build_id_of(2), debug_frame());
  CHECK(world.row_at(kFunction) == RowStatus::Found);
  CHECK(world.images.images_with_debug_cfi() == 0);
  CHECK(world.images.problems().empty());  // the wrong file was not opened
}

TEST_CASE("a compressed .debug_frame of the image itself gives rows, as Go's does") {
  const auto plain = debug_frame();
  OneImage world(
      library_with({.name = ".debug_frame",
                    .flags = SHF_COMPRESSED,
                    .contents = with_compression_header(zlib_packed(plain), plain.size(), 1)}));
  CHECK(world.row_at(kFunction) == RowStatus::Found);
  CHECK(world.images.images_with_debug_cfi() == 1);
}

TEST_CASE("MiniDebugInfo gives rows") {
  const auto inner = make_library(build_id_of(1), debug_frame());
  OneImage world(
      library_with({.name = ".gnu_debugdata", .flags = 0, .contents = xz_packed(inner)}));
  CHECK(world.row_at(kFunction) == RowStatus::Found);
  CHECK(world.images.images_with_debug_cfi() == 1);
}

TEST_CASE("damaged MiniDebugInfo is told, and the debug file looked up all the same") {
  OneImage world(library_with(
      {.name = ".gnu_debugdata", .flags = 0, .contents = PackedBytes(64, std::byte{1})}));
  world.opener.files[kDebugFile] = make_library(build_id_of(1), debug_frame());
  CHECK(world.row_at(kFunction) == RowStatus::Found);
  CHECK(world.images.problems() ==
        std::vector<std::string>{
            "/lib/a.so: no unwind information of its debug data: the xz data is damaged"});
}

TEST_CASE("debug data is paid for from the memory for all images") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(1));
  opener.files[kDebugFile] = make_library(build_id_of(1), debug_frame());
  ImageStore images(opener, {.bytes_left = debug_frame().size() + 900});
  const auto image = images.image(images.module_for(code_of("/lib/a.so", 0x1000'0000)).image);
  REQUIRE(image);
  unwind::Row row;
  CHECK(image->row_at(kFunction, row) == RowStatus::NoCfi);
  CHECK(images.problems().size() == 1);
}

TEST_CASE("what may be decompressed is limited for all images together") {
  const auto inner = make_library(build_id_of(1), debug_frame());
  const auto packed = xz_packed(inner);
  FakeOpener opener;
  opener.files["/lib/a.so"] =
      library_with({.name = ".gnu_debugdata", .flags = 0, .contents = packed});
  const uint64_t needed_bytes = packed.size() + inner.size();
  for (const uint64_t left_bytes : {needed_bytes, needed_bytes - 1}) {
    ImageStore images(opener, {.expandable_bytes_left = left_bytes});
    const auto image = images.image(images.module_for(code_of("/lib/a.so", 0x1000'0000)).image);
    REQUIRE(image);
    unwind::Row row;
    const bool is_enough = left_bytes == needed_bytes;
    CHECK(image->row_at(kFunction, row) == (is_enough ? RowStatus::Found : RowStatus::NoCfi));
    CHECK(images.problems().size() == (is_enough ? 0 : 1));
  }
}

TEST_CASE("what was not even begun to be decompressed costs the other images nothing") {
  const auto plain = debug_frame();
  constexpr uint32_t kUnknown = 3;
  const auto packed = zlib_packed(plain);
  FakeOpener opener;
  opener.files["/lib/a.so"] =
      library_with({.name = ".debug_frame",
                    .flags = SHF_COMPRESSED,
                    .contents = with_compression_header(packed, plain.size(), kUnknown)});
  opener.files["/lib/b.so"] =
      library_with({.name = ".debug_frame",
                    .flags = SHF_COMPRESSED,
                    .contents = with_compression_header(packed, plain.size(), 1)},
                   {}, 2);
  ImageStore images(opener, {.expandable_bytes_left = 2 * plain.size() + 100});
  unwind::Row row;
  const auto status_of = [&](const char* path, uint64_t begin) {
    const auto image = images.image(images.module_for(code_of(path, begin)).image);
    REQUIRE(image);
    return image->row_at(kFunction, row);
  };
  CHECK(status_of("/lib/a.so", 0x1000'0000) == RowStatus::NoCfi);
  CHECK(status_of("/lib/b.so", 0x2000'0000) == RowStatus::Found);
}

TEST_CASE("no debug section of a big-endian image is used, which is told once") {
  const auto plain = debug_frame(std::endian::big);
  const auto packed = with_compression_header(zlib_packed(plain), plain.size(), 1, kBigEndian);
  OneImage world(library_with({.name = ".debug_frame", .flags = SHF_COMPRESSED, .contents = packed},
                              kBigEndian));
  CHECK(world.row_at(kFunction) == RowStatus::NoCfi);
  CHECK(world.images.problems() ==
        std::vector<std::string>{"/lib/a.so: no unwind information: it is big-endian, which this "
                                 "processor's programs are not"});
}

TEST_CASE("a big-endian debug file is not used, and told") {
  OneImage world(make_library(build_id_of(1)));
  world.opener.files[kDebugFile] =
      make_library(build_id_of(1), debug_frame(std::endian::big), kBigEndian);
  CHECK(world.row_at(kFunction) == RowStatus::NoCfi);
  CHECK(world.images.problems() ==
        std::vector<std::string>{"/lib/a.so: no unwind information of its debug data: it is "
                                 "big-endian, which this processor's programs are not"});
}

TEST_CASE(
    "the debug file of an image without symbols is opened when a walk first needs the image") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(1), debug_frame());
  opener.files[kDebugFile] = make_library(build_id_of(1));
  ImageStore images(opener);
  const target::MappingFacts mapping = code_of("/lib/a.so", 0x1000'0000);
  const auto image = images.image(images.module_for(mapping).image);
  CHECK(image->debug_file() == nullptr);
  CHECK(std::ranges::count(opener.opened_by_path, kDebugFile) == 0);
  unwind::Row row;
  CHECK(image->row_at(kFunction, row) == RowStatus::Found);
  CHECK(std::ranges::count(opener.opened_by_path, kDebugFile) == 1);
  opener.ended = {mapping.pid};
  const auto debug_file = image->debug_file();
  REQUIRE(debug_file);
  CHECK(debug_file->size_bytes() == opener.files[kDebugFile].size());
  CHECK(images.images_with_debug_cfi() == 0);
}

TEST_CASE("the debug file of an image with symbols of its own is not opened for names") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = library_with({.name = ".symtab",
                                            .type = SHT_SYMTAB,
                                            .contents = SymbolTableBuilder().symbols(),
                                            .link = ".shstrtab"});
  opener.files[kDebugFile] = make_library(build_id_of(1));
  ImageStore images(opener);
  const auto image = images.image(images.module_for(code_of("/lib/a.so", 0x1000'0000)).image);
  unwind::Row row;
  CHECK(image->row_at(kFunction, row) == RowStatus::NoCfi);
  CHECK(image->debug_file() == nullptr);
  CHECK(std::ranges::count(opener.opened_by_path, kDebugFile) == 1);  // for unwind tables
}

TEST_CASE("no more debug files stay open than there is room for") {
  const auto room = std::make_shared<target::DebugFileRoom>(target::DebugFileRoom{.left = 1});
  int asked = 0;
  const auto find = [&asked]() -> Result<std::shared_ptr<const ByteSource>> {
    if (++asked > 2) return fail(ErrorCode::Gone, "asked before");
    return std::make_shared<MemoryByteSource>(std::vector<std::byte>(1));
  };
  auto first = std::make_unique<target::DebugFile>(find, room);
  target::DebugFile second(find, room);
  for (int i = 0; i < 2; ++i) CHECK(first->file());
  CHECK(asked == 1);
  CHECK_FALSE(second.may_be_kept());
  CHECK(second.file());
  CHECK_FALSE(second.file());
  first.reset();
  CHECK(second.may_be_kept());
}

TEST_CASE("a debug file that nobody gave in time is looked for again") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(1));
  opener.files[kDebugFile] = make_library(build_id_of(1), debug_frame());
  opener.silent = {kDebugFile};
  uint64_t now_ns = 0;
  ImageStore images(opener, {}, [&now_ns] { return now_ns; });
  const auto image = images.image(images.module_for(code_of("/lib/a.so", 0x1000'0000)).image);
  unwind::Row row;
  CHECK(image->row_at(kFunction, row) == RowStatus::NoCfi);
  CHECK(row.is_provisional);
  CHECK(images.problems() ==
        std::vector<std::string>{
            "/lib/a.so: no unwind information of its debug data: does not answer"});
  opener.silent.clear();
  now_ns += kSecond_ns - 1;
  CHECK(image->row_at(kFunction, row) == RowStatus::NoCfi);  // it is too soon
  CHECK(image->debug_file() == nullptr);
  CHECK(std::ranges::count(opener.opened_by_path, kDebugFile) == 1);
  now_ns += 1;
  CHECK(image->row_at(kFunction, row) == RowStatus::Found);
  CHECK(image->debug_file() != nullptr);
  CHECK(images.problems().empty());
}

TEST_CASE("who does not answer for a debug file is asked less and less often") {
  uint64_t now_ns = 0;
  std::vector<uint64_t> asked_at_s;
  const auto find = [&]() -> Result<std::shared_ptr<const ByteSource>> {
    asked_at_s.push_back(now_ns / kSecond_ns);
    return fail(ErrorCode::Io, "does not answer");
  };
  target::DebugFile debug_file(find, std::make_shared<target::DebugFileRoom>(),
                               [&now_ns] { return now_ns; });
  for (; now_ns <= 100 * kSecond_ns; now_ns += kSecond_ns / 4) {
    CHECK_FALSE(debug_file.file());
    CHECK(debug_file.may_answer_soon() == (now_ns < 63 * kSecond_ns));
  }
  CHECK(asked_at_s == std::vector<uint64_t>{0, 1, 3, 7, 15, 31, 63});
}

TEST_CASE("a debug file that falls silent while it is read is read again") {
  const auto library = std::make_shared<MemoryByteSource>(make_library(build_id_of(1)));
  const auto layout = elf::read_layout(*library);
  REQUIRE(layout);
  size_t silent_size_bytes = debug_frame().size();
  uint64_t now_ns = 0;
  const auto find = [&]() -> Result<std::shared_ptr<const ByteSource>> {
    return std::make_shared<HesitantFile>(make_library(build_id_of(1), debug_frame()),
                                          silent_size_bytes);
  };
  target::DebugFile debug_file(find, std::make_shared<target::DebugFileRoom>(),
                               [&now_ns] { return now_ns; });
  target::DebugCfi cfi(library, &debug_file, std::make_shared<elf::CfiBudget>(elf::CfiBudget{}));
  unwind::Row row;
  CHECK(cfi.row_at(*layout, kFunction, row) == RowStatus::NoCfi);
  CHECK(cfi.problem() == "its debug file's file system does not answer");
  silent_size_bytes = SIZE_MAX;
  now_ns += kSecond_ns;
  CHECK(cfi.row_at(*layout, kFunction, row) == RowStatus::Found);
  CHECK(cfi.problem().empty());
}

TEST_CASE("an image whose MiniDebugInfo nobody gave in time is opened anew") {
  const auto packed = xz_packed(make_library(build_id_of(1), debug_frame()));
  HesitantOpener opener;
  opener.file = library_with({.name = ".gnu_debugdata", .flags = 0, .contents = packed});
  opener.silent_size_bytes = packed.size();
  ImageStore images(opener);
  const auto open = [&] {
    return images.image(images.module_for(code_of("/lib/a.so", 0x1000'0000)).image);
  };
  const auto image = open();
  unwind::Row row;
  CHECK(image->row_at(kFunction, row) == RowStatus::NoCfi);
  CHECK(images.is_unanswered(image->id()));
  opener.silent_size_bytes = SIZE_MAX;
  const auto again = open();
  CHECK(again->row_at(kFunction, row) == RowStatus::Found);
  CHECK_FALSE(images.is_unanswered(again->id()));
}
