#include "recorder/copied_code.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sentry_prof::recorder {

namespace {

constexpr uint64_t kComparedPage_bytes = 4096;

// Their addresses; those that the pc is in, or that there are fewer of, once.
std::vector<uint64_t> pages_to_compare(const unwind::Module& code, RuntimeAddress pc) {
  const uint64_t first = code.begin.value / kComparedPage_bytes;
  const uint64_t last = (code.end.value - 1) / kComparedPage_bytes;
  std::vector<uint64_t> pages{pc.value / kComparedPage_bytes};
  for (uint64_t i = 0; i < CopiedCode::kSpreadPages; ++i) {
    pages.push_back(first + (last - first) * i / (CopiedCode::kSpreadPages - 1));
  }
  std::ranges::sort(pages);
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  for (uint64_t& page : pages) page *= kComparedPage_bytes;
  return pages;
}

}  // namespace

bool CopiedCode::is_copy(const MemoryRequest& request, const unwind::Module& code,
                         RuntimeAddress pc) {
  if (!read_) return false;
  if (retries_.size() > kMaxRetries) retries_.clear();
  const auto retry = retries_.find(request.pid);
  const bool is_too_soon =
      retry != retries_.end() && request.sample_time_ns < retry->second.not_before_ns;
  if (is_too_soon) return false;
  if (is_same(request, code, pc)) {
    retries_.erase(request.pid);
    return true;
  }
  Retry& next = retries_[request.pid];
  next.back_off_ns = std::max(kFirstRetry_ns, 2 * next.back_off_ns);
  next.not_before_ns = request.sample_time_ns + next.back_off_ns;
  return false;
}

bool CopiedCode::is_same(const MemoryRequest& request, const unwind::Module& code,
                         RuntimeAddress pc) const {
  const std::vector<uint64_t> pages = pages_to_compare(code, pc);
  std::vector<std::byte> memory(pages.size() * kComparedPage_bytes);
  std::vector<os::MemoryRange> ranges;
  for (size_t i = 0; i < pages.size(); ++i) {
    const uint64_t begin = std::max(pages[i], code.begin.value);
    const uint64_t end = std::min(pages[i] + kComparedPage_bytes, code.end.value);
    ranges.push_back({begin, std::span(memory).subspan(i * kComparedPage_bytes, end - begin)});
  }
  read_(request, ranges);
  std::vector<std::byte> in_file(kComparedPage_bytes);
  return std::ranges::all_of(ranges, [&](const os::MemoryRange& range) {
    const auto file = std::span(in_file).first(range.out.size());
    const LinkAddress begin = to_link({range.address}, code.bias);
    return range.got_bytes == file.size() && code.code->read_code(begin, file) &&
           std::ranges::equal(range.out, file);
  });
}

}  // namespace sentry_prof::recorder
