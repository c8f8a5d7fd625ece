// Rings of records without payload of interest.
#pragma once

#include "sampling/ring_reader.h"
#include "support/record_builder.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace sentry_prof::test {

constexpr size_t kRing_bytes = 4096;

inline sampling::RecordLayout layout() {
  return *sampling::RecordLayout::create(kSampleType, 0, true);
}

// A record of 40 bytes and more.
inline std::vector<std::byte> comm(uint64_t time_ns, std::string_view name) {
  return RecordBuilder(PERF_RECORD_COMM)
      .u32(1)
      .u32(2)
      .string(name)
      .trailer(1, 2, time_ns, 0, 9)
      .build();
}

inline sampling::RingReader reader_of(const RingBuilder& ring) {
  sampling::RingReader reader(ring.bytes(), layout());
  reader.set_range(ring.tail(), ring.head());
  return reader;
}

}  // namespace sentry_prof::test
