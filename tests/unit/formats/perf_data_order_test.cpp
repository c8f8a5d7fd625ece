#include "formats/perf_data_order.h"

#include "support/catch2.h"
#include "support/record_builder.h"

#include <malloc.h>

using namespace sentry_prof;
using namespace sentry_prof::formats;

namespace {

struct Delivered {
  std::vector<uint64_t> times;
  std::vector<size_t> events;
  PerfRecordOrder::Deliver deliver() {
    return [this](uint64_t time_ns, size_t event, Bytes) {
      times.push_back(time_ns);
      events.push_back(event);
    };
  }
};

const std::vector<std::byte> kRecord = test::RecordBuilder(9).zeros(92).build();
using Times = std::vector<uint64_t>;

#ifdef __GLIBC__
size_t allocated_bytes() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}
#endif

}  // namespace

TEST_CASE("a round is delivered once the next one has ended") {
  Delivered delivered;
  PerfRecordOrder order(delivered.deliver());
  for (const uint64_t time : {30, 10, 20}) order.add(time, 0, kRecord);
  order.finish_round();
  CHECK(delivered.times.empty());
  for (const uint64_t time : {25, 50, 40})
    order.add(time, 0, kRecord);  // older than the round before
  order.finish_round();
  CHECK(delivered.times == Times{10, 20, 25, 30});
  order.finish();
  CHECK(delivered.times == Times{10, 20, 25, 30, 40, 50});
  CHECK(order.late_records() == 0);
}

TEST_CASE("equal times keep their order") {
  Delivered delivered;
  PerfRecordOrder order(delivered.deliver());
  for (size_t event = 0; event < 100; ++event) order.add(7, event, kRecord);
  order.finish();
  for (size_t event = 0; event < 100; ++event) CHECK(delivered.events[event] == event);
}

TEST_CASE("a record that is too late gets the time of the one before it, and is counted") {
  Delivered delivered;
  PerfRecordOrder order(delivered.deliver());
  order.add(100, 0, kRecord);
  order.finish_round();
  order.finish_round();
  order.add(50, 1, kRecord);
  order.finish();
  CHECK(delivered.times == Times{100, 100});
  CHECK(order.late_records() == 1);
}

TEST_CASE("without marks so much is held as is allowed") {
  Delivered delivered;
  PerfRecordOrder order(delivered.deliver(), 10 * (kRecord.size() + PerfRecordOrder::kHeld_bytes));
  for (uint64_t i = 0; i < 1'000; ++i) order.add(1'000 + (i ^ 3), 0, kRecord);
  CHECK(delivered.times.size() == 990);
  order.finish();
  CHECK(delivered.times.size() == 1'000);
  CHECK(std::is_sorted(delivered.times.begin(), delivered.times.end()));
  CHECK(order.late_records() == 0);
}

#ifdef __GLIBC__
TEST_CASE("small records that follow large ones take no more than is counted") {
  constexpr size_t kLimit_bytes = 1'000'000;
  const std::vector<std::byte> large = test::RecordBuilder(9).zeros(60'000).build();
  Delivered delivered;
  delivered.times.reserve(20'000);
  delivered.events.reserve(20'000);
  PerfRecordOrder order(delivered.deliver(), kLimit_bytes);
  const size_t before_bytes = allocated_bytes();
  for (uint64_t i = 0; i < 10'000; ++i) {
    order.add(2 * i, 0, large);
    order.add(1'000'000 + i, 0, kRecord);
  }
  CHECK(allocated_bytes() - before_bytes < 2 * kLimit_bytes);
}
#endif
