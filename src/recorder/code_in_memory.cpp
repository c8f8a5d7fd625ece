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

// Null if it is no code, or not known and may not be read now.
const CodeInMemory::Page* CodeInMemory::page_at(uint64_t begin) const {
  if (modules_->find({begin}) == nullptr) return nullptr;
  // Forked processes have their code at the same addresses.
  std::unique_ptr<Page>& place = pages_[(begin / kPage_bytes + program_.pid * 97) % kPages];
  const bool is_known = place != nullptr && place->begin == begin && place->program == program_;
  if (is_known && is_fresh(*place)) return place.get();
  auto page = reads_.take(time_ns_) ? read_page(begin) : nullptr;
  const bool has_bytes = page != nullptr && page->size_bytes > 0;
  if (!has_bytes) ++pages_not_read_;
  if (page == nullptr) return nullptr;
  // A program that has ended by now had what was read last.
  if (is_known && !has_bytes) {
    place->time_ns = time_ns_;
  } else {
    place = std::move(page);
  }
  return place.get();
}

bool CodeInMemory::is_fresh(const Page& page) const {
  const uint64_t age_ns = time_ns_ - std::min(time_ns_, page.time_ns);
  return age_ns < (page.size_bytes > 0 ? kLongestUse_ns : kRetry_ns);
}

std::unique_ptr<CodeInMemory::Page> CodeInMemory::read_page(uint64_t begin) const {
  auto page = std::make_unique<Page>(Page{program_, begin, time_ns_, 0, {}});
  os::MemoryRange range{begin, page->bytes};
  read_({program_.pid, time_ns_}, std::span(&range, 1));
  page->size_bytes = range.got_bytes;
  return page;
}

}  // namespace sentry_prof::recorder
