// Two rings of any bytes with any heads and tails: the merge must end, give back all of both
// ranges, and never let the time decrease.
#include "fuzz/require.h"
#include "sampling/ring_merge.h"

#include <limits>
#include <memory>
#include <vector>

#include <linux/perf_event.h>

using namespace sentry_prof;
using fuzz::require;
using namespace sentry_prof::sampling;

namespace {

constexpr size_t kRing_bytes = 4096;
constexpr uint64_t kSampleType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                 PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

class CheckingSink final : public RecordSink {
 public:
  explicit CheckingSink(const RecordLayout& layout) : layout_(layout) {}
  void on_record(size_t ring, uint64_t time_ns, Bytes record) override {
    require(ring < 2 && time_ns >= last_time_ns_);
    last_time_ns_ = time_ns;
    require(read_record_header(record).size_bytes == record.size());
    decode_record(layout_, record);
    ++records_;
  }
  void on_consumed(size_t) override { require(records_ == ++consumed_); }
  uint64_t records() const { return records_; }

 private:
  RecordLayout layout_;
  uint64_t last_time_ns_ = 0, records_ = 0, consumed_ = 0;
};

struct Range {
  uint64_t tail = 0, head = 0;
};

// Mostly ranges that can be: tail anywhere, up to a ring's length to the head.
Range take_range(ByteReader& in) {
  const uint8_t kind = in.u8();
  const uint64_t tail = in.u64();
  if (kind == 0) return {tail, in.u64()};
  const uint64_t aligned = tail & ~uint64_t{7};
  return {aligned, aligned + in.u16() % (kRing_bytes + 1)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader in(std::as_bytes(std::span(data, size)));
  const Range ranges[2] = {take_range(in), take_range(in)};
  const uint64_t limit_ns = in.u64();
  // What the input does not fill repeats it, so that small inputs fill a ring.
  const Bytes rest = in.bytes(in.remaining());
  std::vector<std::byte> memory(2 * kRing_bytes);
  for (size_t i = 0; i < memory.size() && !rest.empty(); ++i) memory[i] = rest[i % rest.size()];

  const auto layout = RecordLayout::create(kSampleType, 0xff01ff, true);
  std::vector<RingReader> readers;
  for (size_t i = 0; i < 2; ++i) {
    readers.emplace_back(Bytes(memory).subspan(i * kRing_bytes, kRing_bytes), *layout);
    readers[i].set_range(ranges[i].tail, ranges[i].head);
  }
  auto merge = std::make_unique<RingMerge>();
  CheckingSink sink(*layout);
  merge->merge(readers, limit_ns, sink);
  merge->merge(readers, std::numeric_limits<uint64_t>::max(), sink);
  require(sink.records() <= 2 * kRing_bytes / RecordHeader::kSize_bytes);
  for (size_t i = 0; i < 2; ++i) {
    require(readers[i].tail() == ranges[i].head);
    require(readers[i].take_malformed() <= 1);
  }
  return 0;
}
