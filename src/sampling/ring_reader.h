// Walks the records of one ring buffer, in place. Pure: works on any bytes of a power-of-two size.
// Source: perf_event_open(2), "MMAP layout".
#pragma once

#include "sampling/record_decoder.h"

#include <array>
#include <cstdint>
#include <optional>

namespace sentry_prof::sampling {

// A record that straddles the end of the ring is put together here. 64 KiB: a record's size is a
// u16. (Mapping the ring twice in a row would save the copy, once a lap, but Linux 6.16 and newer
// refuse to split or move such mappings.)
using RecordScratch = std::array<std::byte, 64 * 1024>;

// Of a record: its head, its registers and the inner end of its stack.
inline constexpr uint64_t kPrefetch_bytes = 512;

// Head and tail count bytes since the ring's beginning and never wrap. The kernel writes records
// that are multiples of eight bytes, so a header or an aligned u64 never straddles the end.
class RingReader {
 public:
  // `ring`: the data area; its size is a power of two and at least 4096.
  RingReader(Bytes ring, const RecordLayout& layout) : ring_(ring), layout_(layout) {}

  // What may be read: [tail, head). Impossible values count as a malformed record.
  void set_range(uint64_t tail, uint64_t head);

  // The next record's header, nothing at the end. A header that cannot be (size below eight, no
  // multiple of eight, beyond the head) makes the rest of the range unreadable: the reader goes on
  // at the head and tells it by take_malformed().
  std::optional<RecordHeader> front();
  // The next record's time; if it carries none, that of the record before it. Only after front().
  uint64_t front_time_ns() const;
  // The next record's bytes: in the ring, or in `scratch` for the one that straddles its end. Valid
  // until the kernel is told of the new tail, or `scratch` is used again. Only after front().
  Bytes front_bytes(RecordScratch& scratch) const;
  // Asks for the memory of the record behind the next one, so far as it is surely looked at: the
  // kernel wrote it on another CPU, or long ago. Only after front().
  void prefetch_second() const;
  void pop();

  // Up to where records have been consumed.
  uint64_t tail() const { return tail_; }
  uint64_t head() const { return head_; }
  // How often the rest of a range had to be skipped since the last call.
  uint64_t take_malformed();

 private:
  size_t position(uint64_t offset) const {
    return static_cast<size_t>(offset & (ring_.size() - 1));
  }
  void skip_to_head();

  Bytes ring_;
  RecordLayout layout_;
  uint64_t tail_ = 0, head_ = 0;
  uint64_t malformed_ = 0;
  uint64_t last_time_ns_ = 0;
  RecordHeader front_;
};

}  // namespace sentry_prof::sampling
