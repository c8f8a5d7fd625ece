// What is left of a source that is gone.
#include "target/partly_copied.h"

#include "support/catch2.h"

#include <array>
#include <memory>
#include <span>
#include <vector>

using namespace sentry_prof;
using target::CopyBudget;
using target::PartlyCopied;

namespace {

class Numbers final : public ByteSource {
 public:
  uint64_t size_bytes() const override { return 100; }
  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override {
    if (is_gone || offset > size_bytes() || out.size() > size_bytes() - offset) return false;
    for (std::byte& byte : out) byte = static_cast<std::byte>(offset++);
    return true;
  }
  bool was_changed() const override { return is_gone; }

  bool is_gone = false;
};

bool has(const ByteSource& source, uint64_t offset, size_t size_bytes) {
  std::vector<std::byte> out(size_bytes);
  if (!source.read_at(offset, out)) return false;
  for (const std::byte byte : out) {
    if (byte != static_cast<std::byte>(offset++)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("What was copied is there when its source is gone, and nothing else") {
  const auto numbers = std::make_shared<Numbers>();
  const auto budget = std::make_shared<CopyBudget>();
  const uint64_t whole_budget = budget->bytes_left;
  {
    PartlyCopied copied(numbers, budget);
    copied.copy(10, 20);
    copied.copy(50, 10);
    copied.copy(95, 10);
    copied.copy(UINT64_MAX, 2);
    CHECK(has(copied, 0, 100));
    CHECK(budget->bytes_left == whole_budget - 30);
    numbers->is_gone = true;
    CHECK(copied.was_changed());
    CHECK(has(copied, 10, 20));
    CHECK(has(copied, 55, 5));
    CHECK_FALSE(has(copied, 29, 2));
    CHECK_FALSE(has(copied, 9, 2));
    CHECK_FALSE(has(copied, 95, 1));
  }
  CHECK(budget->bytes_left == whole_budget);
}

TEST_CASE("Copies take no more than their budget") {
  const auto numbers = std::make_shared<Numbers>();
  const auto budget = std::make_shared<CopyBudget>();
  budget->bytes_left = 25;
  PartlyCopied copied(numbers, budget);
  copied.copy(0, 20);
  copied.copy(40, 6);
  numbers->is_gone = true;
  CHECK(has(copied, 0, 20));
  CHECK_FALSE(has(copied, 40, 6));
}
