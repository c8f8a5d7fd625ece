#include "sampling/record_counter.h"

#include "support/catch2.h"

#include <linux/perf_event.h>

using namespace sentry_prof::sampling;

namespace {

void count(RecordCounter& counter, uint32_t type, decltype(Event::body) body) {
  DecodedRecord decoded;
  decoded.event.body = body;
  RecordHeader header;
  header.type = type;
  counter.count(header, decoded);
}

}  // namespace

TEST_CASE("samples are counted whether they could be decoded or not") {
  RecordCounter counter;
  count(counter, PERF_RECORD_SAMPLE, SampleEvent{});
  count(counter, PERF_RECORD_SAMPLE, UndecodableEvent{});
  count(counter, PERF_RECORD_COMM, UndecodableEvent{});
  CHECK(counter.stats().records == 3);
  CHECK(counter.stats().sample_records == 2);
  CHECK(counter.stats().undecodable == 2);
  CHECK(counter.stats().undecodable_samples == 1);
}

TEST_CASE("a ring that could not be read further is an undecodable sample") {
  RecordCounter counter;
  counter.count_malformed(2);
  CHECK(counter.stats().sample_records == 2);
  CHECK(counter.stats().undecodable_samples == 2);
}

TEST_CASE("without a count of the kernel, all that LOST tells may be samples") {
  RecordCounter counter;
  count(counter, PERF_RECORD_LOST, LostEvent{7});
  count(counter, PERF_RECORD_LOST_SAMPLES, LostEvent{2});
  CHECK(counter.stats().lost_samples == 9);
  CHECK(counter.stats().lost_records == 0);
}

TEST_CASE("losses beyond all numbers do not begin at zero again") {
  RecordCounter counter;
  count(counter, PERF_RECORD_LOST, LostEvent{UINT64_MAX - 1});
  count(counter, PERF_RECORD_LOST, LostEvent{7});
  CHECK(counter.stats().lost_samples == kMostLost);
  count(counter, PERF_RECORD_LOST_SAMPLES, LostEvent{UINT64_MAX});
  count(counter, PERF_RECORD_LOST_SAMPLES, LostEvent{2});
  CHECK(counter.stats().lost_samples == kMostLost);
}

TEST_CASE("the kernel's count tells lost samples from other lost records") {
  RecordCounter counter;
  count(counter, PERF_RECORD_LOST, LostEvent{7});
  counter.set_lost_by_events(4);
  CHECK(counter.stats().lost_samples == 4);
  CHECK(counter.stats().lost_records == 3);
  count(counter, PERF_RECORD_LOST, LostEvent{1});  // still in a ring when counting ended
  CHECK(counter.stats().lost_samples == 4);
  CHECK(counter.stats().lost_records == 4);
}

TEST_CASE("losses that no LOST record told are known by the kernel's count") {
  RecordCounter counter;
  counter.set_lost_by_events(5);
  CHECK(counter.stats().lost_samples == 5);
  CHECK(counter.stats().lost_records == 0);
}

TEST_CASE("only the begin of throttling counts") {
  RecordCounter counter;
  count(counter, PERF_RECORD_THROTTLE, ThrottleEvent{true});
  count(counter, PERF_RECORD_UNTHROTTLE, ThrottleEvent{false});
  CHECK(counter.stats().throttled == 1);
}
