#include "recorder/code_in_memory.h"

#include <algorithm>

namespace sentry_prof::recorder {

bool CodeInMemory::read_code(LinkAddress begin, std::span<std::byte> out) const {
  uint64_t address = begin.value;
  while (!out.empty()) {
    const Page* const page = page_at(address & ~uint64_t{kPage_bytes - 1});
    const size_t inside = static_cast<size_t>(address % kPage_bytes);
    if (page == nullptr || inside >= page->size_bytes) return false;
    const size_t count = std::min(out.size(), page->size_bytes - inside);
    std::copy_n(page->bytes.begin() + static_cast<std::ptrdiff_t>(inside), count, out.begin());
    out = out.subspan(count);
    address += count;
  }
  return true;
}

// Null if it is not known, and may not be read now.
const CodeInMemory::Page* CodeInMemory::page_at(uint64_t begin) const {
  std::unique_ptr<Page>& place = pages_[(begin / kPage_bytes) % kPages];
  const bool is_known = place != nullptr && place->begin == begin && place->space == space_;
  const bool is_fresh = is_known && time_ns_ - std::min(time_ns_, place->time_ns) < kLongestUse_ns;
  if (is_fresh) return place.get();
  if (!may_read()) {
    ++pages_not_read_;
    return is_known ? place.get() : nullptr;
  }
  auto page = std::make_unique<Page>(Page{space_, begin, time_ns_, 0, {}});
  page->size_bytes = read_({space_.pid, time_ns_, {begin}}, page->bytes).size_bytes;
  if (page->size_bytes == 0) ++pages_not_read_;
  // A program that has ended by now had what was read last.
  if (is_known && page->size_bytes == 0) {
    place->time_ns = time_ns_;
  } else {
    place = std::move(page);
  }
  return place.get();
}

bool CodeInMemory::may_read() const {
  if (read_ == nullptr) return false;
  if (time_ns_ - std::min(time_ns_, second_begin_ns_) >= kNsPerSecond) {
    second_begin_ns_ = time_ns_;
    pages_in_second_ = 0;
  }
  return pages_in_second_++ < kPagesPerSecond;
}

}  // namespace sentry_prof::recorder
