#include "unwind/process_start.h"

#include "support/catch2.h"
#include "support/fake_cfi.h"

#include <elf.h>

using namespace sentry_prof;
using namespace sentry_prof::test;
using namespace sentry_prof::unwind;

namespace {

constexpr uint64_t kStartSp = 0x7000;
constexpr uint64_t kStrings = 0x7800;

// Two arguments, one variable.
const std::vector<uint64_t> kStart{2,      kStrings, kStrings + 5, 0,         kStrings + 9,
                                   0,      AT_PHDR,  0x400040,     AT_PAGESZ, 0x1000,
                                   AT_UID, 0,        AT_NULL,      0};

std::optional<RuntimeAddress> found(std::vector<uint64_t> words, uint64_t sp = kStartSp) {
  const FakeStack stack(kStartSp, std::move(words));
  return process_start_above(stack, {sp});
}

std::vector<uint64_t> with(size_t index, uint64_t value) {
  std::vector<uint64_t> words = kStart;
  words[index] = value;
  return words;
}

std::vector<uint64_t> below(size_t count) {
  std::vector<uint64_t> words(count, 0x55);
  words.insert(words.end(), kStart.begin(), kStart.end());
  return words;
}

}  // namespace

TEST_CASE("the arguments that the kernel laid out mark where a process began") {
  CHECK(found(kStart) == RuntimeAddress{kStartSp});
  CHECK(found(below(12)) == RuntimeAddress{kStartSp + 96});
  CHECK(found(below(64)) == RuntimeAddress{kStartSp + 512});
  CHECK_FALSE(found(below(65)));
  CHECK_FALSE(found(kStart, kStartSp + 8));
}

TEST_CASE("what only looks like arguments does not") {
  CHECK_FALSE(found(std::vector<uint64_t>(100, 0)));
  CHECK_FALSE(found(with(0, 1)));
  CHECK_FALSE(found(with(0, 3)));
  CHECK_FALSE(found(with(0, UINT64_MAX)));
  CHECK_FALSE(found(with(1, 0x6000)));   // strings lie above
  CHECK_FALSE(found(with(4, 0x10)));     // of the environment, too
  CHECK_FALSE(found(with(6, AT_BASE)));  // no program headers
  CHECK_FALSE(found(with(8, AT_BASE)));  // no page size
  CHECK_FALSE(found(with(9, 0x1001)));
  CHECK_FALSE(found(with(10, 0x10000)));  // no type
  CHECK_FALSE(found(with(12, AT_UID)));   // no end
}

TEST_CASE("a copy that ends before the auxiliary vector does says nothing") {
  for (size_t words = 0; words < kStart.size(); ++words) {
    CHECK_FALSE(found({kStart.begin(), kStart.begin() + static_cast<std::ptrdiff_t>(words)}));
  }
}
