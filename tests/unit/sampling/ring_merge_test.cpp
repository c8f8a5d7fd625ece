#include "sampling/ring_merge.h"

#include "ring_fixture.h"
#include "support/catch2.h"

#include <limits>

using namespace sentry_prof;
using namespace sentry_prof::sampling;
using namespace sentry_prof::test;

namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

struct Seen {
  size_t ring;
  uint64_t time_ns;
  std::string name;
  bool operator==(const Seen&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << seen.ring << "@" << seen.time_ns << ":" << seen.name;
}

class Recorder final : public RecordSink {
 public:
  void on_record(size_t ring, uint64_t time_ns, Bytes record) override {
    const auto decoded = decode_record(layout(), record);
    seen.push_back({ring, time_ns, std::string(std::get<CommEvent>(decoded.event.body).name)});
  }
  void on_consumed(size_t ring) override { consumed.push_back(ring); }

  std::vector<Seen> seen;
  std::vector<size_t> consumed;
};

}  // namespace

TEST_CASE("records of several rings come in the order of time") {
  RingBuilder a(kRing_bytes), b(kRing_bytes), c(kRing_bytes);
  a.append(comm(1, "a1")).append(comm(4, "a4")).append(comm(9, "a9"));
  b.append(comm(2, "b2")).append(comm(3, "b3"));
  c.append(comm(5, "c5"));
  std::vector<RingReader> readers{reader_of(a), reader_of(b), reader_of(c)};
  Recorder recorder;
  RingMerge().merge(readers, kNoLimit, recorder);
  CHECK(recorder.seen ==
        std::vector<Seen>{
            {0, 1, "a1"}, {1, 2, "b2"}, {1, 3, "b3"}, {0, 4, "a4"}, {2, 5, "c5"}, {0, 9, "a9"}});
  CHECK(recorder.consumed == std::vector<size_t>{0, 1, 1, 0, 2, 0});
}

TEST_CASE("equal times keep the order inside a ring, and the lower ring comes first") {
  RingBuilder a(kRing_bytes), b(kRing_bytes);
  a.append(comm(5, "a1")).append(comm(5, "a2")).append(comm(5, "a3"));
  b.append(comm(5, "b1")).append(comm(5, "b2"));
  std::vector<RingReader> readers{reader_of(a), reader_of(b)};
  Recorder recorder;
  RingMerge().merge(readers, kNoLimit, recorder);
  CHECK(recorder.seen ==
        std::vector<Seen>{{0, 5, "a1"}, {0, 5, "a2"}, {0, 5, "a3"}, {1, 5, "b1"}, {1, 5, "b2"}});
}

TEST_CASE("records younger than the limit wait for the next time") {
  RingBuilder a(kRing_bytes), b(kRing_bytes);
  a.append(comm(1, "a1")).append(comm(6, "a6"));
  b.append(comm(5, "b5")).append(comm(7, "b7"));
  std::vector<RingReader> readers{reader_of(a), reader_of(b)};
  RingMerge merge;
  Recorder first, second;
  merge.merge(readers, 5, first);
  CHECK(first.seen == std::vector<Seen>{{0, 1, "a1"}, {1, 5, "b5"}});
  merge.merge(readers, kNoLimit, second);
  CHECK(second.seen == std::vector<Seen>{{0, 6, "a6"}, {1, 7, "b7"}});
}

TEST_CASE("a record out of order keeps its place and gets the time of the one before") {
  RingBuilder a(kRing_bytes);
  a.append(comm(10, "interrupt")).append(comm(8, "interrupted")).append(comm(12, "next"));
  std::vector<RingReader> readers{reader_of(a)};
  Recorder recorder;
  RingMerge().merge(readers, kNoLimit, recorder);
  CHECK(recorder.seen ==
        std::vector<Seen>{{0, 10, "interrupt"}, {0, 10, "interrupted"}, {0, 12, "next"}});
}

TEST_CASE("times do not decrease from one merge to the next either") {
  RingBuilder a(kRing_bytes), late(kRing_bytes);
  a.append(comm(10, "in time"));
  late.append(comm(9, "late"));
  RingMerge merge;
  Recorder recorder;
  std::vector<RingReader> readers{reader_of(a)};
  merge.merge(readers, kNoLimit, recorder);
  std::vector<RingReader> later{reader_of(late)};
  merge.merge(later, kNoLimit, recorder);
  CHECK(recorder.seen == std::vector<Seen>{{0, 10, "in time"}, {0, 10, "late"}});
}

TEST_CASE("a malformed ring does not hold up the others") {
  RingBuilder bad(kRing_bytes), good(kRing_bytes);
  bad.append(comm(1, "bad1")).append(RecordBuilder(PERF_RECORD_COMM).build_with_size(0));
  good.append(comm(2, "good2")).append(comm(3, "good3"));
  std::vector<RingReader> readers{reader_of(bad), reader_of(good)};
  Recorder recorder;
  RingMerge().merge(readers, kNoLimit, recorder);
  CHECK(recorder.seen == std::vector<Seen>{{0, 1, "bad1"}, {1, 2, "good2"}, {1, 3, "good3"}});
  CHECK(readers[0].take_malformed() == 1);
  CHECK(readers[1].take_malformed() == 0);
}

TEST_CASE("no rings, no records") {
  Recorder recorder;
  RingMerge().merge({}, kNoLimit, recorder);
  CHECK(recorder.seen.empty());
}
