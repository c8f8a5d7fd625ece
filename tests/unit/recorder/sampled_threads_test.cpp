// Threads of a recording whose records get lost.
#include "recorder/sampled_threads.h"

#include "recording_fixture.h"
#include "support/catch2.h"

#include <map>
#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::recorder;

namespace {

constexpr uint32_t kLossyProcess = 10, kLossyThread = 11, kSecondThread = 12, kExecProcess = 20;
constexpr uint64_t kSamplingPeriod_ns = 25;

struct LossyThreads {
  recorder_test::FewFiles files;
  target::ImageStore images{files};
  target::ProcessTable processes{images};
  profile::ChunkBuilder builder{0};
  SampleFigures figures;
  SampledThreads threads{builder, processes, figures, kSamplingPeriod_ns};

  void sample(uint32_t pid, uint32_t tid, uint64_t time_ns) {
    const uint32_t thread = threads.on_sample(pid, tid, time_ns);
    const profile::FrameKey frame{0, true, 0x1000};
    builder.add_sample(time_ns, thread, std::span(&frame, 1));
  }

  // The times of all idle markers, by thread.
  std::map<uint32_t, std::vector<uint64_t>> markers(uint64_t end_ns) {
    threads.end_chunk(end_ns);
    const profile::RawChunk chunk = builder.finish(end_ns);
    std::map<uint32_t, std::vector<uint64_t>> result;
    for (const profile::RawSample& sample : chunk.samples) {
      if (sample.stack == 0) result[chunk.threads[sample.thread].tid].push_back(sample.time_ns);
    }
    return result;
  }
};

using IdleMarkers = std::map<uint32_t, std::vector<uint64_t>>;

}  // namespace

TEST_CASE("a thread counts as away from the first loss on, until it shows up again") {
  LossyThreads t;
  t.sample(kLossyProcess, kLossyThread, 10);
  t.sample(kLossyProcess, kSecondThread, 20);
  for (const uint64_t loss_ns : {100, 200, 300}) t.threads.on_records_lost(loss_ns);
  t.sample(kLossyProcess, kLossyThread, 320);
  t.threads.on_records_lost(330);
  t.sample(kLossyProcess, kLossyThread, 340);  // too soon for a marker
  CHECK(t.markers(1000) == IdleMarkers{{kLossyThread, {100}}, {kSecondThread, {100}}});
}

TEST_CASE("however many losses there are, each thread has one absence") {
  LossyThreads t;
  t.sample(kLossyProcess, kLossyThread, 10);
  for (uint64_t time_ns = 100; time_ns < 5000; ++time_ns) t.threads.on_records_lost(time_ns);
  t.sample(kLossyProcess, kLossyThread, 6000);
  t.sample(kLossyProcess, kSecondThread, 6010);  // knows nothing of them
  t.threads.end(kSecondThread, 6020);
  CHECK(t.markers(7000) == IdleMarkers{{kLossyThread, {100}}, {kSecondThread, {6020}}});
}

TEST_CASE("an exec ends the threads of its own process") {
  LossyThreads t;
  t.sample(kLossyProcess, kLossyProcess, 10);
  t.sample(kLossyProcess, kLossyThread, 20);
  t.sample(kExecProcess, kExecProcess, 30);
  t.threads.end_others(kLossyProcess, kLossyProcess, 40);
  t.threads.end_others(kLossyProcess, kLossyProcess, 50);
  CHECK(t.markers(60) == IdleMarkers{{kLossyThread, {40}}});
  t.threads.end_others(kLossyProcess, std::nullopt, 70);
  t.threads.end_others(kExecProcess, std::nullopt, 70);
  t.threads.end_others(99, std::nullopt, 70);
}

TEST_CASE("who is in no chunk learns of losses and of its absence in a later one") {
  LossyThreads t;
  t.sample(kLossyProcess, kLossyThread, 10);
  CHECK(t.markers(20).empty());
  t.threads.on_records_lost(100);
  CHECK(t.markers(1000).empty());
  t.threads.on_switch(kLossyProcess, kLossyThread, false, 2000);
  t.threads.on_switch(kLossyProcess, kLossyThread, true, 2010);
  t.threads.end_all();
  CHECK(t.figures.on_cpu_ns == (100 - 10) + (2010 - 2000));
}

TEST_CASE("a thread that begins anew within a chunk is idle at its end like any other") {
  LossyThreads t;
  t.sample(kLossyProcess, kLossyThread, 10);
  t.threads.end(kLossyThread, 20);
  t.sample(kLossyProcess, kLossyThread, 30);
  t.threads.on_switch(kLossyProcess, kLossyThread, true, 40);
  t.sample(kLossyProcess, kSecondThread, 45);
  t.threads.end(kSecondThread, 50);
  CHECK(t.markers(1000) == IdleMarkers{{kLossyThread, {20, 40}}, {kSecondThread, {50}}});
  t.sample(kLossyProcess, kLossyThread, 2000);
  t.threads.on_switch(kLossyProcess, kLossyThread, true, 2010);
  CHECK(t.markers(3000) == IdleMarkers{{kLossyThread, {2010}}});
}
