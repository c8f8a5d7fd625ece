#include "recorder/code_in_memory.h"

#include <algorithm>

namespace sentry_prof::recorder {

void CodeInMemory::forget(uint32_t pid) {
  if (!has_pages_) return;  // as for most programs, however often they fork
  for (std::unique_ptr<Page>& page : pages_) {
    if (page != nullptr && page->id.pid == pid) page.reset();
  }
}

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
  if (!is_code(begin)) return nullptr;
  const PageId id{pid_, begin};
  const Page* const page = known(id);
  if (is_fresh(page)) {
    if (is_old(*page)) note_old(id);
    return page;
  }
  if (!may_read(page)) {
    if (is_usable(page)) return page;
    ++pages_not_read_;
    return nullptr;
  }
  read_around(id);
  return known(id);
}

// Forked processes have their code at the same addresses.
std::unique_ptr<CodeInMemory::Page>& CodeInMemory::place_of(const PageId& id) const {
  return pages_[(id.begin / kPage_bytes + id.pid * 97) % kPages];
}

const CodeInMemory::Page* CodeInMemory::known(const PageId& id) const {
  const Page* const page = place_of(id).get();
  return page != nullptr && page->id == id ? page : nullptr;
}

bool CodeInMemory::is_fresh(const Page* page) const {
  return page != nullptr && !page->is_doubtful && age_ns(*page) < page->use_ns;
}

bool CodeInMemory::may_read(const Page* page) const {
  const bool is_only_doubtful = page != nullptr && age_ns(*page) < page->use_ns;
  if (is_only_doubtful && !doubtful_reads_.take(time_ns_)) return false;
  return reads_.take(time_ns_);
}

// What could not be read again is not asked for sooner than it would be.
bool CodeInMemory::is_old(const Page& page) const {
  return page.size_bytes > 0 && page.read_ns == page.time_ns &&
         age_ns(page) >= page.use_ns / kDoubtfulShare;
}

void CodeInMemory::note_old(const PageId& id) const {
  const auto noted = std::span(old_ids_).first(old_pages_);
  if (noted.size() == old_ids_.size() || std::ranges::find(noted, id) != noted.end()) return;
  old_ids_[old_pages_++] = id;
}

bool CodeInMemory::doubt() {
  if (old_pages_ == 0 || !doubts_.take(time_ns_)) return false;
  for (const PageId& id : std::span(old_ids_).first(old_pages_)) {
    std::unique_ptr<Page>& place = place_of(id);
    if (known(id) != nullptr) place->is_doubtful = true;
  }
  old_pages_ = 0;
  return true;
}

bool CodeInMemory::is_usable(const Page* page) const {
  return page != nullptr && page->size_bytes > 0 && age_ns(*page) < kLongestUse_ns;
}

void CodeInMemory::read_around(const PageId& wanted) const {
  std::array<std::unique_ptr<Page>, kPagesOfRead> pages;
  std::array<os::MemoryRange, kPagesOfRead> ranges;
  size_t count = 0;
  const auto add = [&](const PageId& id) {
    pages[count] = std::make_unique<Page>(Page{id, time_ns_, kRetry_ns, time_ns_, 0, {}});
    ranges[count] = {id.begin, pages[count]->bytes};
    ++count;
  };
  add(wanted);  // first: what comes behind may not be read any more
  const uint64_t first = wanted.begin & ~(kPagesOfRead * kPage_bytes - 1);
  for (uint64_t i = 0; i < kPagesOfRead; ++i) {
    const PageId id{pid_, first + i * kPage_bytes};
    if (is_code(id.begin) && id != wanted && !is_fresh(known(id))) add(id);
  }
  read_({pid_, time_ns_, MemoryKind::Code}, std::span(ranges).first(count));
  for (size_t i = 0; i < count; ++i) {
    pages[i]->size_bytes = ranges[i].got_bytes;
    const bool is_wanted = i == 0;
    if (is_wanted || (ranges[i].got_bytes > 0 && has_room_for(pages[i]->id))) {
      keep(std::move(pages[i]), is_wanted);
    }
  }
  if (ranges[0].got_bytes == 0) ++pages_not_read_;
}

// One that was not asked for takes no place of another that is in use.
bool CodeInMemory::has_room_for(const PageId& id) const {
  return known(id) != nullptr || !is_fresh(place_of(id).get());
}

// What nobody asks for may be where a compiler puts its next function: that it has not changed yet
// says nothing.
void CodeInMemory::keep(std::unique_ptr<Page> page, bool is_wanted) const {
  std::unique_ptr<Page>& place = place_of(page->id);
  const bool is_known = known(page->id) != nullptr;
  const bool may_have_ended =
      is_known && time_ns_ - std::min(time_ns_, place->read_ns) <= kLongestUnread_ns;
  if (page->size_bytes == 0 && may_have_ended) {
    place->time_ns = time_ns_;
    place->use_ns = kRetry_ns;
    place->is_doubtful = false;
    return;
  }
  const bool is_same =
      is_known && place->size_bytes == page->size_bytes && place->bytes == page->bytes;
  if (page->size_bytes > 0) {
    const uint64_t longer_ns = is_same ? (is_wanted ? 2 : 1) * place->use_ns : kShortestUse_ns;
    page->use_ns = std::min(longer_ns, kLongestUse_ns);
  }
  place = std::move(page);
  has_pages_ = true;
}

}  // namespace sentry_prof::recorder
