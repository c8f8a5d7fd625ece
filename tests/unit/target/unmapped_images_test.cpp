// Images that no process maps any more.
#include "support/catch2.h"
#include "target/image_store.h"
#include "unit/elf/cfi_builder.h"
#include "unit/target/fake_opener.h"

#include <algorithm>
#include <unordered_set>

using namespace sentry_prof;
using namespace sentry_prof::test;
using target::ImageStore;
using unwind::ImageId;
using unwind::kNoImage;

namespace {

constexpr LinkAddress kCoveredPc{0x3010};

std::vector<std::byte> library_with_rows(uint8_t id) {
  elf_test::FrameBuilder frames({.is_eh_frame = false});
  frames.cie({.augmentation = "", .augmentation_data = {}});
  frames.fde(kCoveredPc.value, 0x10);
  return make_library(build_id_of(id), frames.sections().debug_frame.bytes);
}

struct Store {
  explicit Store(elf::CfiBudget budget = {}) : images(opener, budget) {}

  // Which the opener has, unless it is taken away.
  ImageId map(size_t number) {
    const std::string path = "/lib/" + std::to_string(number);
    if (!is_gone) opener.files[path] = make_library({});
    return images.module_for(code_of(path, 0x1000'0000, number)).image;
  }

  bool has(ImageId id) const { return images.image(id) != nullptr; }

  FakeOpener opener;
  bool is_gone = false;
  ImageStore images;
};

}  // namespace

TEST_CASE("Images that no process maps are closed, but for those that were asked for last") {
  Store store;
  const ImageId mapped = store.map(0);
  const ImageId first = store.map(1);
  const ImageId again = store.map(2);
  for (size_t i = 3; i < 3 + ImageStore::kMaxUnmapped; ++i) store.map(i);
  CHECK(store.map(2) == again);
  const auto gone = store.images.forget_unmapped({mapped});
  CHECK(gone == std::vector<ImageId>{first + 2, first});
  CHECK(store.has(mapped));
  CHECK(store.has(again));
  CHECK_FALSE(store.has(first));
  CHECK(store.images.forget_unmapped({mapped}).empty());
  CHECK(store.images.images_seen() == 3 + ImageStore::kMaxUnmapped);
}

TEST_CASE("Where too many files are open those that no process maps make room") {
  Store store;
  const ImageId mapped = store.map(0);
  const ImageId unmapped = store.map(1);
  CHECK(store.images.forget_unmapped({mapped}).empty());
  store.opener.is_full = true;
  for (int i = 0; i < 20; ++i) CHECK(store.images.image(store.map(2))->is_known_by_name_only());
  CHECK(store.images.forget_unmapped({mapped, store.map(2)}) == std::vector<ImageId>{unmapped});
  store.opener.is_full = false;
  const auto later = store.images.image(store.map(2));
  CHECK_FALSE(later->is_known_by_name_only());
  CHECK_FALSE(store.images.is_unanswered(later->id()));
  CHECK(store.images.forget_unmapped({mapped}).empty());  // as many as ever may stay
}

TEST_CASE("A file that is mapped again after it was forgotten is another image") {
  Store store;
  const ImageId first = store.map(1);
  const auto held = store.images.image(first);
  for (size_t i = 2; i < 2 + ImageStore::kMaxUnmapped; ++i) store.map(i);
  CHECK(store.images.forget_unmapped({}) == std::vector<ImageId>{first});
  const ImageId second = store.map(1);
  CHECK(second > first + ImageStore::kMaxUnmapped);
  CHECK(store.images.image(second)->path() == "/lib/1");
  CHECK(held->path() == "/lib/1");  // of who still has it
}

TEST_CASE("What was wrong with a forgotten image is still told") {
  Store store;
  store.is_gone = true;
  store.map(1);
  store.is_gone = false;
  const ElfKind big_endian{.machine = EM_AARCH64, .order = std::endian::big};
  store.opener.files["/lib/bad"] = make_library(build_id_of(1), {}, big_endian);
  const ImageId bad = store.images.module_for(code_of("/lib/bad", 0x1000'0000)).image;
  unwind::Row row;
  store.images.image(bad)->row_at(kCoveredPc, row);
  const auto problems = store.images.problems();
  REQUIRE(problems.size() == 2);
  for (size_t i = 2; i < 2 + ImageStore::kMaxUnmapped; ++i) store.map(i);
  store.images.forget_unmapped({});
  CHECK_FALSE(store.has(bad));
  CHECK(store.images.problems() == problems);
}

TEST_CASE("The memory of a forgotten image's unwind tables is there for others") {
  Store enough;
  enough.opener.files["/lib/a.so"] = library_with_rows(1);
  const auto row_of = [](Store& store, const char* path, size_t inode) {
    const ImageId id = store.images.module_for(code_of(path, 0x1000'0000, inode)).image;
    unwind::Row row;
    return store.images.image(id)->row_at(kCoveredPc, row);
  };
  REQUIRE(row_of(enough, "/lib/a.so", 500) == unwind::RowStatus::Found);
  // As much as one needs, but not two.
  uint64_t budget_bytes = 0;
  for (bool is_enough = false; !is_enough; budget_bytes += 8) {
    Store one({.bytes_left = budget_bytes});
    one.opener.files["/lib/a.so"] = library_with_rows(1);
    is_enough = row_of(one, "/lib/a.so", 500) == unwind::RowStatus::Found;
  }
  Store store({.bytes_left = budget_bytes});
  store.opener.files["/lib/a.so"] = library_with_rows(1);
  store.opener.files["/lib/b.so"] = library_with_rows(2);
  store.opener.files["/lib/c.so"] = library_with_rows(3);
  CHECK(row_of(store, "/lib/a.so", 500) == unwind::RowStatus::Found);
  CHECK(row_of(store, "/lib/b.so", 501) == unwind::RowStatus::NoCfi);
  for (size_t i = 1; i < 1 + ImageStore::kMaxUnmapped; ++i) store.map(i);
  CHECK(store.images.forget_unmapped({}).size() == 2);
  CHECK(row_of(store, "/lib/c.so", 502) == unwind::RowStatus::Found);
}

TEST_CASE("Unwind tables of images that no process maps do not fill the memory for others") {
  Store store;
  constexpr size_t kTable_bytes = ImageStore::kMaxUnmappedCfi_bytes / 2 + 1;
  std::vector<std::byte> table(kTable_bytes);  // one entry, as long as all of it
  for (size_t i = 0; i < 4; ++i) table[i] = static_cast<std::byte>((kTable_bytes - 4) >> (8 * i));
  std::vector<ImageId> ids;
  for (uint8_t number = 1; number <= 2; ++number) {
    const std::string path = "/lib/large" + std::to_string(number);
    store.opener.files[path] = make_library(build_id_of(number), table);
    ids.push_back(store.images.module_for(code_of(path, 0x1000'0000, number)).image);
    unwind::Row row;
    store.images.image(ids.back())->row_at(kCoveredPc, row);
    CHECK(store.images.image(ids.back())->cfi_bytes() >= kTable_bytes);
  }
  CHECK(store.images.forget_unmapped({ids[0], ids[1]}).empty());
  CHECK(store.images.forget_unmapped({}) == std::vector<ImageId>{ids[0]});
}

TEST_CASE("A problem of an image that was opened again is told once") {
  Store store;
  const ElfKind big_endian{.machine = EM_AARCH64, .order = std::endian::big};
  store.opener.files["/lib/bad"] = make_library(build_id_of(1), {}, big_endian);
  const auto look = [&] {
    const ImageId id = store.images.module_for(code_of("/lib/bad", 0x1000'0000)).image;
    unwind::Row row;
    store.images.image(id)->row_at(kCoveredPc, row);
  };
  look();
  for (size_t i = 2; i < 2 + ImageStore::kMaxUnmapped; ++i) store.map(i);
  CHECK(store.images.forget_unmapped({}).size() == 1);
  look();
  CHECK(store.images.problems().size() == 1);
}

TEST_CASE("Of names without an image no more are kept than some") {
  Store store;
  const auto map_memory_file = [&](size_t number) {
    return store.images
        .module_for(code_of("/memfd:jit" + std::to_string(number) + " (deleted)", 0x1000, number))
        .image;
  };
  constexpr size_t kMany = ImageStore::kMaxSpareKeys + 10;
  for (size_t i = 0; i < kMany; ++i) CHECK(map_memory_file(i) == kNoImage);
  store.images.forget_unmapped({});
  // Is told by whether the opener is asked as often as for one that is not known.
  const auto attempts_for = [&](size_t number) {
    store.opener.opened.clear();
    for (int i = 0; i < 20; ++i) map_memory_file(number);
    return store.opener.opened.size();
  };
  const size_t unknown = attempts_for(kMany + 1);
  CHECK(attempts_for(0) == unknown);
  CHECK(attempts_for(kMany - 1) == unknown - 1);
}

TEST_CASE("A library that is unpacked anew again and again has not all of its names kept") {
  Store store;
  const auto map_as = [&](const std::string& path, uint64_t inode) {
    store.opener.files[path] = make_library(build_id_of(7));
    return store.images.module_for(code_of(path, 0x1000'0000, inode)).image;
  };
  constexpr size_t kMany = ImageStore::kMaxSpareKeys + 10;
  const ImageId unpacked = map_as("/tmp/0/lib.so", 1);
  for (size_t i = 1; i < kMany; ++i) {
    CHECK(map_as("/tmp/" + std::to_string(i) + "/lib.so", i + 1) == unpacked);
  }
  store.images.forget_unmapped({unpacked});
  // A name that is known needs no opening; one that is not leads to the same image.
  const auto opens_for = [&](size_t number) {
    store.opener.opened.clear();
    CHECK(map_as("/tmp/" + std::to_string(number) + "/lib.so", number + 1) == unpacked);
    return store.opener.opened.size();
  };
  CHECK(opens_for(kMany - 1) == 0);
  CHECK(opens_for(10) == 0);
  CHECK(opens_for(0) == 1);
}
