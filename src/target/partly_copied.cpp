#include "target/partly_copied.h"

#include "base/checked.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::target {

PartlyCopied::~PartlyCopied() {
  for (const Copy& copy : copies_) budget_->bytes_left += copy.bytes.size();
}

void PartlyCopied::copy(uint64_t offset, uint64_t size_bytes) {
  if (size_bytes > budget_->bytes_left || !range_fits(offset, size_bytes, this->size_bytes())) {
    return;
  }
  Copy copy{offset, std::vector<std::byte>(static_cast<size_t>(size_bytes))};
  if (!source_->read_at(offset, copy.bytes)) return;
  budget_->bytes_left -= size_bytes;
  copies_.push_back(std::move(copy));
}

bool PartlyCopied::read_at(uint64_t offset, std::span<std::byte> out) const {
  for (const Copy& copy : copies_) {
    if (offset < copy.offset) continue;
    const uint64_t inside = offset - copy.offset;
    if (!range_fits(inside, out.size(), copy.bytes.size())) continue;
    std::ranges::copy(std::span(copy.bytes).subspan(inside, out.size()), out.begin());
    return true;
  }
  return source_->read_at(offset, out);
}

}  // namespace sentry_prof::target
