// ImageStore where a file cannot be opened, by this process or by any, falls silent, or is written
// to.
#include "support/catch2.h"
#include "target/image_store.h"
#include "unit/target/fake_opener.h"

using namespace sentry_prof;
using namespace sentry_prof::test;
using target::ImageStore;
using unwind::kNoImage;
using unwind::Module;

TEST_CASE("ImageStore keeps the name of what cannot be opened and says so once") {
  FakeOpener opener;
  ImageStore images(opener);
  const Module module = images.module_for(code_of("/gone.so (deleted)", 0x1000'0000));
  REQUIRE(module.image != kNoImage);
  CHECK(module.cfi == nullptr);
  CHECK(images.image(module.image)->path() == "/gone.so");
  CHECK(images.image(module.image)->identity().debug_id.is_nil());
  CHECK(images.module_for(code_of("/gone.so (deleted)", 0x2000'0000)).image == module.image);
  CHECK(images.problems() == std::vector<std::string>{"/gone.so (deleted): no such file"});
}

TEST_CASE("ImageStore tries again to open a file, but not for ever") {
  FakeOpener opener;
  ImageStore images(opener);
  const auto mapping = code_of("/lib/a.so", 0x1000'0000, 0, build_id_of(1));
  const Module unopened = images.module_for(mapping);
  SECTION("a later process can still show it") {
    opener.files["/lib/a.so"] = make_library(build_id_of(1));
    const Module opened = images.module_for(mapping);
    CHECK(opened.cfi != nullptr);
    CHECK(opened.image != unopened.image);
    CHECK(images.module_for(mapping).image == opened.image);
  }
  SECTION("nobody can") {
    for (int i = 0; i < 100; ++i) CHECK(images.module_for(mapping).image == unopened.image);
    CHECK(opener.opened.size() == 8);
    CHECK(images.images_seen() == 1);
  }
}

TEST_CASE("A file that could be opened later is no problem, but another one of its name is") {
  FakeOpener opener;
  ImageStore images(opener);
  const auto first = code_of("/lib/a.so", 0x1000'0000, 0, build_id_of(1));
  const auto second = code_of("/lib/a.so", 0x1000'0000, 0, build_id_of(2));
  images.module_for(code_of("/lib/z.so", 0x2000'0000));
  images.module_for(first);
  images.module_for(second);
  const std::string z = "/lib/z.so: no such file", a = "/lib/a.so: no such file";
  CHECK(images.problems() == std::vector<std::string>{z, a});
  opener.files["/lib/a.so"] = make_library(build_id_of(1));
  images.module_for(first);
  CHECK(images.problems() == std::vector<std::string>{z, a});
  opener.files["/lib/a.so"] = make_library(build_id_of(2));
  images.module_for(second);
  CHECK(images.problems() == std::vector<std::string>{z});
}

TEST_CASE("What a file could not be opened for is told as it was last") {
  FakeOpener opener;
  ImageStore images(opener);
  const auto mapping = code_of("/lib/a.so", 0x1000'0000, 0, build_id_of(1));
  opener.ended = {mapping.pid};
  images.module_for(mapping);
  CHECK(images.problems() == std::vector<std::string>{"/lib/a.so: its process ended"});
  opener.ended.clear();
  images.module_for(mapping);
  CHECK(images.problems() == std::vector<std::string>{"/lib/a.so: no such file"});
}

TEST_CASE(
    "ImageStore opens a file for a process that lives, however many ended before they could") {
  FakeOpener opener;
  opener.files["/app"] = make_library(build_id_of(1));
  ImageStore images(opener);
  target::MappingFacts mapping = code_of("/app", 0x1000'0000, 0, build_id_of(1));
  opener.ended = {mapping.pid};
  for (int i = 0; i < 100; ++i) CHECK(images.module_for(mapping).cfi == nullptr);
  mapping.pid += 1;
  CHECK(images.module_for(mapping).cfi != nullptr);
}

TEST_CASE("ImageStore looks for a program by name where a file that is no ELF lies in its place") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(1));
  opener.files_in_place[0x1000'0000] = std::vector<std::byte>(5000, std::byte{'x'});
  ImageStore images(opener);
  const Module module = images.module_for(code_of("/lib/a.so", 0x1000'0000, 0, build_id_of(1)));
  CHECK(module.cfi != nullptr);
  CHECK(images.problems().empty());
}

TEST_CASE(
    "ImageStore reads a file that was deleted or replaced in the process that has it mapped") {
  FakeOpener opener;
  ImageStore images(opener);
  const auto id = GENERATE(std::vector<std::byte>(), build_id_of(1));
  const auto mapping = code_of("/lib/a.so", 0x1000'0000, 7, id);
  if (!id.empty()) opener.files["/lib/a.so"] = make_library(build_id_of(2));
  SECTION("it is the file that was mapped") {
    opener.mapped_files[0x1000'0000] = make_library(build_id_of(1));
    const Module module = images.module_for(mapping);
    CHECK(module.cfi != nullptr);
    CHECK(images.image(module.image)->identity().build_id == build_id_of(1));
    CHECK(images.problems().empty());
  }
  SECTION("another one is mapped there by now: why the first could not be opened is told") {
    opener.mapped_files[0x1000'0000] = {std::byte{'?'}};
    CHECK(images.module_for(mapping).cfi == nullptr);
    REQUIRE(images.problems().size() == 1);
    CHECK(images.problems()[0] == (id.empty()
                                       ? "/lib/a.so: no such file"
                                       : "/lib/a.so: the file was replaced since it was mapped"));
  }
  SECTION("nobody answers for it: who asks for its pages waits as well") {
    opener.mapped_files[0x1000'0000] = make_library(build_id_of(1));
    opener.silent = {"/lib/a.so"};
    CHECK(images.module_for(mapping).cfi == nullptr);
  }
  SECTION("another process has a file of the same build") {
    opener.files["/lib/b.so"] = make_library(build_id_of(1));
    opener.mapped_files[0x1000'0000] = make_library(build_id_of(1), std::vector<std::byte>(64));
    const Module whole = images.module_for(code_of("/lib/b.so", 0x2000'0000));
    CHECK(images.module_for(mapping).image == whole.image);
    CHECK(images.images_seen() == 1);
  }
}

TEST_CASE("ImageStore tries again to read a deleted file in its process until that is answered") {
  FakeOpener opener;
  opener.mapped_files[0x1000'0000] = make_library(build_id_of(1));
  opener.silent_when_mapped = {"/lib/a.so"};
  ImageStore images(opener);
  const auto mapping = code_of("/lib/a.so", 0x1000'0000);
  unwind::ImageId nameless = kNoImage;
  for (int i = 0; i < 20; ++i) nameless = images.module_for(mapping).image;
  CHECK(images.is_unanswered(nameless));
  CHECK(images.problems() == std::vector<std::string>{"/lib/a.so: does not answer"});
  opener.silent_when_mapped.clear();
  const Module module = images.module_for(mapping);
  CHECK(module.cfi != nullptr);
  CHECK_FALSE(images.is_unanswered(module.image));
  CHECK(images.problems().empty());
}

TEST_CASE("ImageStore leaves alone for a while who did not answer, whoever maps that file") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(1));
  opener.silent = {"/lib/a.so"};
  uint64_t now_ns = 5 * kNsPerSecond;
  uint64_t wait_ns = ImageStore::kLongWait_ns;
  ImageStore images(opener, {}, [&] { return now_ns += wait_ns; });
  const auto nameless = images.module_for(code_of("/lib/a.so", 0x1000'0000));
  wait_ns = 0;
  opener.silent.clear();
  now_ns += ImageStore::kLeaveAlone_ns - 1;
  CHECK(images.module_for(code_of("/lib/a.so", 0x2000'0000)).image == nameless.image);
  now_ns += 1;
  CHECK(images.module_for(code_of("/lib/a.so", 0x1000'0000)).cfi != nullptr);
}

TEST_CASE("ImageStore reads no file in a process that was opened and is no ELF") {
  FakeOpener opener;
  ImageStore images(opener);
  opener.files["/data"] = {std::byte{'?'}};
  opener.mapped_files[0x1000'0000] = make_library(build_id_of(1));
  CHECK(images.module_for(code_of("/data", 0x1000'0000)).cfi == nullptr);
  CHECK(images.image(images.module_for(code_of("/data", 0x1000'0000)).image)
            ->is_known_by_name_only());
}

TEST_CASE("ImageStore tries again to open a file that nobody gave, until somebody does") {
  FakeOpener opener;
  opener.files["/far/a.so"] = make_library(build_id_of(1));
  opener.silent = {"/far/a.so"};
  ImageStore images(opener);
  const auto open = [&] { return images.module_for(code_of("/far/a.so", 0x1000'0000)).image; };
  const unwind::ImageId nameless = open();
  for (int i = 0; i < 20; ++i) CHECK(open() == nameless);
  CHECK(images.is_unanswered(nameless));
  opener.silent.clear();
  const unwind::ImageId image = open();
  CHECK(image != nameless);
  CHECK_FALSE(images.is_unanswered(image));
  CHECK(images.image(image)->identity().build_id == build_id_of(1));
  opener.opened.clear();
  CHECK(open() == image);
  CHECK(opener.opened.empty());
  CHECK(images.problems().empty());
}

namespace {

// A library whose server falls silent.
class FarLibrary final : public ByteSource {
 public:
  FarLibrary(std::vector<std::byte> bytes, const bool& is_silent)
      : bytes_(std::move(bytes)), is_silent_(is_silent) {}
  uint64_t size_bytes() const override { return bytes_.size_bytes(); }
  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override {
    was_silent_ |= is_silent_;
    return !is_silent_ && bytes_.read_at(offset, out);
  }
  bool was_silent() const override { return was_silent_; }

 private:
  MemoryByteSource bytes_;
  const bool& is_silent_;
  mutable bool was_silent_ = false;
};

class FarOpener final : public target::ImageOpener {
 public:
  Result<std::shared_ptr<const ByteSource>> open(const target::MappingFacts&) override {
    return std::make_shared<FarLibrary>(
        make_library(build_id_of(1), std::vector<std::byte>(64, std::byte{1})), is_silent);
  }
  Result<std::shared_ptr<const ByteSource>> open_by_path(
      const target::MappingFacts& mapping) override {
    return open(mapping);
  }
  Result<std::shared_ptr<const ByteSource>> open_mapped(
      const target::MappingFacts& /*mapping*/) override {
    return fail(ErrorCode::Gone, "its process has ended");
  }

  bool is_silent = false;
};

}  // namespace

TEST_CASE("ImageStore opens a file anew whose server fell silent while it was read") {
  FarOpener opener;
  ImageStore images(opener);
  const auto open = [&] { return images.module_for(code_of("/far/a.so", 0x1000'0000)); };
  SECTION("when it was opened") {
    opener.is_silent = true;
    const Module nameless = open();
    CHECK(nameless.cfi == nullptr);
    CHECK(images.is_unanswered(nameless.image));
    opener.is_silent = false;
    CHECK(open().cfi != nullptr);
  }
  SECTION("when its unwind tables were wanted") {
    const Module module = open();
    CHECK_FALSE(images.is_unanswered(module.image));
    opener.is_silent = true;
    unwind::Row row;
    CHECK(module.cfi->row_at({0x3000}, row) == unwind::RowStatus::NoCfi);
    CHECK(images.is_unanswered(module.image));
    opener.is_silent = false;
    const Module again = open();
    CHECK(again.image != module.image);
    CHECK_FALSE(images.is_unanswered(again.image));
  }
}

namespace {

// A program that is overwritten in place: same device, inode and path.
class OverwrittenFile final : public ByteSource {
 public:
  OverwrittenFile(std::vector<std::byte> bytes, const int& writes)
      : bytes_(std::move(bytes)), writes_(writes), writes_before_(writes) {}
  uint64_t size_bytes() const override { return bytes_.size_bytes(); }
  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override {
    return is_unchanged() && bytes_.read_at(offset, out);
  }
  bool is_unchanged() const override {
    was_changed_ |= writes_ != writes_before_;
    return writes_ == writes_before_;
  }
  bool was_changed() const override { return was_changed_; }

 private:
  MemoryByteSource bytes_;
  const int& writes_;
  int writes_before_;
  mutable bool was_changed_ = false;
};

class OverwritingOpener final : public target::ImageOpener {
 public:
  Result<std::shared_ptr<const ByteSource>> open(const target::MappingFacts&) override {
    if (is_gone) return fail(ErrorCode::NotFound, "no such file");
    return std::make_shared<OverwrittenFile>(make_library(build_id), writes);
  }
  Result<std::shared_ptr<const ByteSource>> open_by_path(
      const target::MappingFacts& mapping) override {
    return open(mapping);
  }
  Result<std::shared_ptr<const ByteSource>> open_mapped(
      const target::MappingFacts& /*mapping*/) override {
    return fail(ErrorCode::Gone, "its process has ended");
  }

  std::vector<std::byte> build_id;
  bool is_gone = false;
  int writes = 0;
};

}  // namespace

TEST_CASE("ImageStore takes a program that was overwritten in place for another image") {
  OverwritingOpener opener;
  ImageStore images(opener);
  const target::MappingFacts mapping = code_of("/tmp/prog", 0x1000'0000);
  const Module old = images.module_for(mapping);
  CHECK(images.module_for(mapping).image == old.image);
  CHECK(images.problems().empty());
  ++opener.writes;
  SECTION("which is there") {
    const Module now = images.module_for(mapping);
    CHECK(now.image != old.image);
    CHECK(now.cfi != nullptr);
    CHECK(images.module_for(mapping).image == now.image);
  }
  SECTION("which cannot be opened: it is not the old one") {
    opener.is_gone = true;
    const Module now = images.module_for(mapping);
    CHECK(now.image != old.image);
    CHECK(now.cfi == nullptr);
  }
  REQUIRE_FALSE(images.problems().empty());
  CHECK(images.problems().back().starts_with("/tmp/prog: was overwritten while it was recorded"));
}

TEST_CASE("ImageStore opens an image with a build id anew once a read showed it overwritten") {
  OverwritingOpener opener;
  opener.build_id = build_id_of(1);
  ImageStore images(opener);
  const target::MappingFacts mapping = code_of("/tmp/a.so", 0x1000'0000, 7, opener.build_id);
  const Module old = images.module_for(mapping);
  ++opener.writes;
  CHECK(images.module_for(mapping).image == old.image);
  unwind::Row row;
  CHECK(old.cfi->row_at({0x3000}, row) == unwind::RowStatus::NoCfi);
  const Module now = images.module_for(mapping);
  CHECK(now.image != old.image);
  CHECK(images.module_for(mapping).image == now.image);

  opener.build_id = build_id_of(2);
  ++opener.writes;
  CHECK_FALSE(images.image(now.image)->file().is_unchanged());
  CHECK(images.module_for(mapping).image == now.image);
  CHECK(images.problems().front() == "/tmp/a.so: the file was replaced since it was mapped");
}
