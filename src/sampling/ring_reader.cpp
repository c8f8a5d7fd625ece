#include "sampling/ring_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sentry_prof::sampling {

void RingReader::set_range(uint64_t tail, uint64_t head) {
  tail_ = tail;
  head_ = head;
  if (head_ - tail_ > ring_.size() || tail_ % 8 != 0) skip_to_head();
}

void RingReader::skip_to_head() {
  ++malformed_;
  tail_ = head_;
}

std::optional<RecordHeader> RingReader::front() {
  const uint64_t available_bytes = head_ - tail_;
  if (available_bytes == 0) return std::nullopt;
  front_ = {};
  if (available_bytes >= RecordHeader::kSize_bytes) {
    front_ = read_record_header(ring_.subspan(position(tail_), RecordHeader::kSize_bytes));
  }
  const bool is_possible = front_.size_bytes >= RecordHeader::kSize_bytes &&
                           front_.size_bytes % 8 == 0 && front_.size_bytes <= available_bytes;
  if (is_possible) return front_;
  skip_to_head();
  return std::nullopt;
}

uint64_t RingReader::front_time_ns() const {
  const uint16_t offset = record_time_offset(layout_, front_);
  if (offset == RecordLayout::kAbsent) return last_time_ns_;
  uint64_t time_ns;
  std::memcpy(&time_ns, ring_.data() + position(tail_ + offset), sizeof time_ns);
  return time_ns;
}

Bytes RingReader::front_bytes(RecordScratch& scratch) const {
  const size_t begin = position(tail_);
  const size_t until_end = ring_.size() - begin;
  const size_t size_bytes = front_.size_bytes;
  if (size_bytes <= until_end) return ring_.subspan(begin, size_bytes);
  std::copy_n(ring_.begin() + static_cast<ptrdiff_t>(begin), until_end, scratch.begin());
  std::copy_n(ring_.begin(), size_bytes - until_end,
              scratch.begin() + static_cast<ptrdiff_t>(until_end));
  return Bytes(scratch).first(size_bytes);
}

void RingReader::prefetch_second() const {
  constexpr uint64_t kCacheLine_bytes = 64;
  const uint64_t begin = tail_ + front_.size_bytes;
  const uint64_t end = std::min(begin + kPrefetch_bytes, head_);
  for (uint64_t offset = begin; offset < end; offset += kCacheLine_bytes) {
    __builtin_prefetch(ring_.data() + position(offset));
  }
}

void RingReader::pop() {
  last_time_ns_ = front_time_ns();
  tail_ += front_.size_bytes;
}

uint64_t RingReader::take_malformed() { return std::exchange(malformed_, 0); }

}  // namespace sentry_prof::sampling
