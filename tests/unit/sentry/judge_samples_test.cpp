#include "sentry/judge_samples.h"

#include "judge_support.h"
#include "support/catch2.h"

namespace sentry_prof::sentry {
namespace {

using Rules = std::vector<std::string>;
constexpr double kNow = 1768478400;
constexpr uint64_t kSecond = 1'000'000'000;

TEST_CASE("two samples of one thread are enough for both formats") {
  CHECK(v1().v1_sample(0, 0, 1).v1_sample(10, 0, 1).judge(judge_samples).rules().empty());
  CHECK(v2().v2_sample(kNow, 0, 1).v2_sample(kNow, 0, 1).judge(judge_samples).rules().empty());
}

TEST_CASE("one sample on each of two threads is too little for the server, not for the documents") {
  for (FactsBuilder builder : {v1().v1_sample(0, 0, 1).v1_sample(1, 1, 1),
                               v2().v2_sample(kNow, 0, 1).v2_sample(kNow, 1, 1)}) {
    const Judged judged = builder.judge(judge_samples);
    CHECK(judged.report.relay.reason == "profiling_not_enough_samples");
    CHECK(judged.report.documents.valid);
    CHECK(judged.pointer("enough-samples") == "/profile/samples");
    CHECK(judged.summary.dropped_samples == 2);
    CHECK(judged.summary.dropped_threads == 2);
  }
}

TEST_CASE("no samples at all are told once") {
  CHECK(v2().judge(judge_samples).rules() == Rules{"enough-samples"});
  CHECK(v1().judge(judge_samples).rules() == Rules{"enough-samples", "v1-two-samples"});
}

TEST_CASE("V1 drops samples outside the transaction's window first, its ends included") {
  FactsBuilder builder = v1();
  builder.facts().relative_start_ns = 10;
  builder.facts().relative_end_ns = 20;
  const Judged inside = builder.v1_sample(10, 0, 1).v1_sample(20, 0, 1).judge(judge_samples);
  CHECK(inside.rules().empty());
  const Judged outside = builder.v1_sample(21, 0, 1).judge(judge_samples);
  CHECK(outside.rules() == Rules{"v1-window"});
  CHECK(outside.pointer("v1-window") == "/profile/samples/2/elapsed_since_start_ns");
  CHECK(outside.summary.dropped_samples == 1);
}

TEST_CASE("a window that ends at 0 is none") {
  FactsBuilder builder = v1();
  builder.facts().relative_start_ns = 10;
  CHECK(builder.v1_sample(1, 0, 1).v1_sample(2, 0, 1).judge(judge_samples).rules().empty());
}

TEST_CASE("V1 trims idle samples at a thread's edges, not between its active ones") {
  const Judged inner =
      v1().v1_sample(0, 0, 1).v1_sample(1, 0, 0).v1_sample(2, 0, 1).judge(judge_samples);
  CHECK(inner.rules().empty());
  CHECK(inner.summary.idle_samples == 1);
  const Judged edges =
      v1().v1_sample(0, 0, 0).v1_sample(1, 0, 1).v1_sample(2, 0, 1).v1_sample(3, 0, 0).judge(
          judge_samples);
  CHECK(edges.rules() == Rules{"v1-idle-edges"});
  CHECK(edges.pointer("v1-idle-edges") == "/profile/samples/0");
  CHECK(edges.summary.dropped_samples == 2);
  CHECK(edges.summary.dropped_threads == 0);
}

TEST_CASE("V1 drops a thread that trimming leaves one sample") {
  const Judged judged =
      v1().v1_sample(0, 0, 1).v1_sample(1, 0, 1).v1_sample(2, 1, 0).v1_sample(3, 1, 1).judge(
          judge_samples);
  CHECK(judged.rules() == Rules{"v1-idle-edges", "v1-thread-one-sample"});
  CHECK(judged.pointer("v1-thread-one-sample") == "/profile/samples/3/thread_id");
  CHECK(judged.report.relay.valid);
  CHECK(judged.summary.dropped_threads == 1);
}

TEST_CASE("V1 takes a missing stack at an edge for idle, and refuses one between active samples") {
  const Judged edge =
      v1().v1_sample(0, 0, 7).v1_sample(1, 0, 1).v1_sample(2, 0, 1).judge(judge_samples);
  CHECK(edge.pointer("sample-stack-dropped") == "/profile/samples/0/stack_id");
  CHECK(edge.report.relay.valid);
  const Judged inner =
      v1().v1_sample(0, 0, 1).v1_sample(1, 0, 7).v1_sample(2, 0, 1).judge(judge_samples);
  CHECK(inner.rules() == Rules{"sample-stack"});
  CHECK(inner.report.relay.reason == "profiling_malformed_samples");
}

TEST_CASE("V2 refuses a missing stack at the edge of a thread that is kept") {
  const Judged judged = v2().v2_sample(kNow, 0, 1)
                            .v2_sample(kNow + 1, 0, 1)
                            .v2_sample(kNow + 2, 0, UINT32_MAX)
                            .judge(judge_samples);
  CHECK(judged.rules() == Rules{"sample-stack"});
  CHECK(judged.pointer("sample-stack") == "/profile/samples/2/stack_id");
}

TEST_CASE("V2 forgives a missing stack on a thread that it drops") {
  const Judged judged = v2().v2_sample(kNow, 0, 1)
                            .v2_sample(kNow + 1, 0, 1)
                            .v2_sample(kNow + 2, 1, 7)
                            .judge(judge_samples);
  CHECK(judged.report.relay.valid);
  CHECK(judged.pointer("sample-stack-dropped") == "/profile/samples/2/stack_id");
  CHECK(judged.pointer("v2-thread-one-sample") == "/profile/samples/2/thread_id");
}

TEST_CASE("V2 drops a thread with one active sample together with its idle ones") {
  FactsBuilder builder = v2();
  builder.v2_sample(kNow, 0, 1).v2_sample(kNow, 0, 1);
  builder.v2_sample(kNow, 1, 0).v2_sample(kNow, 1, 1).v2_sample(kNow, 1, 0);
  const Judged judged = builder.judge(judge_samples);
  CHECK(judged.rules() == Rules{"v2-thread-one-sample"});
  CHECK(judged.summary.dropped_samples == 3);
}

TEST_CASE("V2 keeps idle samples at the edges of a thread with two active ones") {
  const Judged judged = v2().v2_sample(kNow, 0, 0)
                            .v2_sample(kNow, 0, 1)
                            .v2_sample(kNow, 0, 1)
                            .v2_sample(kNow, 0, 0)
                            .judge(judge_samples);
  CHECK(judged.rules().empty());
  CHECK(judged.summary.dropped_samples == 0);
}

TEST_CASE("V1's duration is the last element's time: 30 s pass, a nanosecond more does not") {
  CHECK(v1().v1_sample(0, 0, 1).v1_sample(30 * kSecond, 0, 1).judge(judge_samples).rules().empty());
  const Judged late =
      v1().v1_sample(30 * kSecond, 0, 1).v1_sample(30 * kSecond + 1, 0, 1).judge(judge_samples);
  CHECK(late.rules() == Rules{"v1-duration"});
  CHECK(late.report.relay.reason == "profiling_duration_is_too_long");
  CHECK(late.report.documents.valid);
}

TEST_CASE(
    "an unsorted V1 profile that is too long slips through the server, not through the documents") {
  const Judged judged =
      v1().v1_sample(0, 0, 1).v1_sample(31 * kSecond, 0, 1).v1_sample(5, 0, 1).judge(judge_samples);
  CHECK(judged.report.relay.valid);
  CHECK_FALSE(judged.report.documents.valid);
  CHECK(judged.pointer("v1-span") == "/profile/samples/1/elapsed_since_start_ns");
  CHECK(judged.pointer("v1-samples-order") == "/profile/samples/2/elapsed_since_start_ns");
}

TEST_CASE("V1's last element counts only if it is kept") {
  const Judged judged =
      v1().v1_sample(0, 0, 1).v1_sample(1, 0, 1).v1_sample(40 * kSecond, 0, 0).judge(judge_samples);
  CHECK(judged.report.relay.valid);
}

TEST_CASE("V2's duration is that of the kept samples in any order: 66 s pass, more does not") {
  CHECK(v2().v2_sample(kNow, 0, 1).v2_sample(kNow + 66, 0, 1).judge(judge_samples).rules().empty());
  const Judged judged = v2().v2_sample(kNow + 70, 0, 1).v2_sample(kNow, 0, 1).judge(judge_samples);
  CHECK(judged.report.relay.reason == "profiling_duration_is_too_long");
  CHECK(judged.pointer("v2-duration") == "/profile/samples/0/timestamp");
  CHECK(judged.pointer("v2-samples-order") == "/profile/samples/1/timestamp");
  const Judged dropped = v2().v2_sample(kNow, 0, 1)
                             .v2_sample(kNow + 1, 0, 1)
                             .v2_sample(kNow + 100, 1, 1)
                             .judge(judge_samples);
  CHECK(dropped.report.relay.valid);
}

TEST_CASE("V2 timestamps in milliseconds or near 1970 are told as misplaced") {
  for (const double odd : {kNow * 1e3, kNow * 1e6, kNow * 1e9, 0.0, 5.5, -1.0}) {
    const Judged judged = v2().v2_sample(odd, 0, 1).v2_sample(odd, 0, 1).judge(judge_samples);
    CHECK(judged.rules() == Rules{"v2-timestamp-time"});
    CHECK(judged.report.relay.valid);
  }
}

TEST_CASE("samples whose types are wrong are not judged") {
  FactsBuilder builder = v2();
  builder.facts().samples_are_typed = false;
  CHECK(builder.v2_sample(kNow, 0, 7).judge(judge_samples).rules().empty());
}

TEST_CASE("a hundred problems of a rule are listed, further ones counted") {
  FactsBuilder builder = v2();
  builder.v2_sample(kNow, 0, 1).v2_sample(kNow, 0, 1);
  for (int i = 0; i < 150; ++i) builder.v2_sample(kNow, 0, 9);
  const Judged judged = builder.judge(judge_samples);
  CHECK(judged.rules().size() == 100);
  REQUIRE(judged.report.unlisted.size() == 1);
  CHECK(judged.report.unlisted[0].rule == "sample-stack");
  CHECK(judged.report.unlisted[0].count == 50);
  CHECK(judged.report.problems.back().pointer == "/profile/samples/101/stack_id");
}

TEST_CASE("where a sample is told of is its offset in the text") {
  const Judged judged =
      v2().v2_sample(kNow, 0, 1).v2_sample(kNow, 0, 1).v2_sample(kNow, 0, 7).judge(judge_samples);
  const std::string head = R"({"transaction":{"active_thread_id":"100"},"profile":{"samples":[)";
  const std::string sample =
      R"({"elapsed_since_start_ns":0,"timestamp":0,"thread_id":"100","stack_id":0})";
  REQUIRE(judged.find("sample-stack") != nullptr);
  CHECK(judged.find("sample-stack")->offset_bytes ==
        head.size() + 2 * (sample.size() + 1) + sample.size() - 2);
}

}  // namespace
}  // namespace sentry_prof::sentry
