#include "recorder/thread_activity.h"

#include "support/catch2.h"

using sentry_prof::recorder::ThreadActivity;

namespace {
constexpr uint64_t kThreshold_ns = 20;
}

TEST_CASE("A thread that sleeps longer than two periods is idle from where it left the CPU") {
  ThreadActivity thread;
  CHECK_FALSE(thread.on_sample(100, kThreshold_ns));
  thread.on_switch_out(105);
  CHECK(thread.on_switch_in(126, kThreshold_ns) == 105u);
}

TEST_CASE("A short absence is drawn as work") {
  ThreadActivity thread;
  thread.on_sample(100, kThreshold_ns);
  thread.on_switch_out(105);
  CHECK_FALSE(thread.on_switch_in(125, kThreshold_ns));
}

TEST_CASE("An idle thread gets one marker, however often it wakes up without a sample") {
  ThreadActivity thread;
  thread.on_sample(100, kThreshold_ns);
  thread.on_switch_out(105);
  CHECK(thread.on_switch_in(200, kThreshold_ns));
  thread.on_switch_out(201);
  CHECK_FALSE(thread.on_switch_in(300, kThreshold_ns));
}

TEST_CASE("A sample whose switch-in record was lost ends the absence too") {
  ThreadActivity thread;
  thread.on_sample(100, kThreshold_ns);
  thread.on_switch_out(105);
  CHECK(thread.on_sample(200, kThreshold_ns) == 105u);
}

TEST_CASE("A thread's end closes its stack once") {
  ThreadActivity thread;
  thread.on_sample(100, kThreshold_ns);
  CHECK(thread.on_exit(110) == 110u);
  CHECK_FALSE(thread.on_exit(111));
}

TEST_CASE("A thread that is away when the chunk ends is idle in it, and has no stack in the next") {
  ThreadActivity thread;
  thread.on_sample(100, kThreshold_ns);
  thread.on_switch_out(105);
  CHECK(thread.on_chunk_end(200, kThreshold_ns) == 105u);
  CHECK_FALSE(thread.on_switch_in(300, kThreshold_ns));
}

TEST_CASE("A thread that works across a chunk's end gets no marker") {
  ThreadActivity thread;
  thread.on_sample(100, kThreshold_ns);
  CHECK_FALSE(thread.on_chunk_end(200, kThreshold_ns));
}

TEST_CASE("Time on the CPU is the sum of what lies between switches") {
  ThreadActivity thread;
  thread.on_switch_in(100, kThreshold_ns);
  thread.on_switch_out(130);
  thread.on_switch_in(200, kThreshold_ns);
  thread.leave_cpu(205);
  CHECK(thread.on_cpu_ns() == 35);
}

TEST_CASE("After lost records a thread that does not show up again is idle, one that does is not") {
  ThreadActivity gone;
  gone.on_sample(100, kThreshold_ns);
  gone.on_records_lost(110);
  CHECK(gone.on_sample(200, kThreshold_ns) == 110u);
  ThreadActivity busy;
  busy.on_sample(100, kThreshold_ns);
  busy.on_records_lost(110);
  CHECK_FALSE(busy.on_sample(120, kThreshold_ns));
}

TEST_CASE("Lost records do not move the moment at which a sleeping thread left") {
  ThreadActivity thread;
  thread.on_sample(100, kThreshold_ns);
  thread.on_switch_out(105);
  thread.on_records_lost(150);
  CHECK(thread.on_switch_in(200, kThreshold_ns) == 105u);
}
