#include "recorder/thread_activity.h"

#include "support/catch2.h"

using sentry_prof::recorder::ThreadActivity;

namespace {
constexpr uint64_t kPeriod_ns = 10;
}

TEST_CASE("A thread that sleeps longer than two periods is idle from where it left the CPU") {
  ThreadActivity thread;
  CHECK_FALSE(thread.on_sample(100, kPeriod_ns));
  thread.on_switch_out(105);
  CHECK(thread.on_switch_in(126, kPeriod_ns) == 105u);
}

TEST_CASE("A short absence is drawn as work") {
  ThreadActivity thread;
  thread.on_sample(100, kPeriod_ns);
  thread.on_switch_out(105);
  CHECK_FALSE(thread.on_switch_in(125, kPeriod_ns));
}

TEST_CASE(
    "Short absences that add up are idle from where the thread left behind its sample's period") {
  ThreadActivity thread;
  thread.on_sample(100, kPeriod_ns);
  thread.on_switch_out(101);
  CHECK_FALSE(thread.on_switch_in(108, kPeriod_ns));
  thread.on_switch_out(109);
  CHECK_FALSE(thread.on_switch_in(116, kPeriod_ns));
  thread.on_switch_out(117);
  CHECK(thread.on_switch_in(126, kPeriod_ns) == 117u);
}

TEST_CASE("A thread that sleeps long is idle from then, whatever short absences it had before") {
  ThreadActivity thread;
  thread.on_sample(100, kPeriod_ns);
  thread.on_switch_out(112);
  CHECK_FALSE(thread.on_switch_in(113, kPeriod_ns));
  thread.on_switch_out(118);
  CHECK(thread.on_switch_in(200, kPeriod_ns) == 118u);
}

TEST_CASE("Short absences between two samples do not count behind the second") {
  ThreadActivity thread;
  for (const uint64_t begin : {uint64_t{100}, uint64_t{130}}) {
    CHECK_FALSE(thread.on_sample(begin, kPeriod_ns));
    thread.on_switch_out(begin + 11);
    CHECK_FALSE(thread.on_switch_in(begin + 26, kPeriod_ns));
  }
}

TEST_CASE("An idle thread gets one marker, however often it wakes up without a sample") {
  ThreadActivity thread;
  thread.on_sample(100, kPeriod_ns);
  thread.on_switch_out(105);
  CHECK(thread.on_switch_in(200, kPeriod_ns));
  thread.on_switch_out(201);
  CHECK_FALSE(thread.on_switch_in(300, kPeriod_ns));
}

TEST_CASE("A sample whose switch-in record was lost ends the absence too") {
  ThreadActivity thread;
  thread.on_sample(100, kPeriod_ns);
  thread.on_switch_out(105);
  CHECK(thread.on_sample(200, kPeriod_ns) == 105u);
}

TEST_CASE("A thread's end closes its stack once") {
  ThreadActivity thread;
  thread.on_sample(100, kPeriod_ns);
  CHECK(thread.on_exit(110) == 110u);
  CHECK_FALSE(thread.on_exit(111));
}

TEST_CASE("A thread that is away when the chunk ends is idle in it, and has no stack in the next") {
  ThreadActivity thread;
  thread.on_sample(100, kPeriod_ns);
  thread.on_switch_out(105);
  CHECK(thread.on_chunk_end(200, kPeriod_ns) == 105u);
  CHECK_FALSE(thread.on_switch_in(300, kPeriod_ns));
}

TEST_CASE("A thread that works across a chunk's end gets no marker") {
  ThreadActivity thread;
  thread.on_sample(100, kPeriod_ns);
  CHECK_FALSE(thread.on_chunk_end(200, kPeriod_ns));
}

TEST_CASE("Time on the CPU is the sum of what lies between switches") {
  ThreadActivity thread;
  thread.on_switch_in(100, kPeriod_ns);
  thread.on_switch_out(130);
  thread.on_switch_in(200, kPeriod_ns);
  thread.leave_cpu(205);
  CHECK(thread.on_cpu_ns() == 35);
}

TEST_CASE("After lost records a thread that does not show up again is idle, one that does is not") {
  ThreadActivity gone;
  gone.on_sample(100, kPeriod_ns);
  gone.on_records_lost(110);
  CHECK(gone.on_sample(200, kPeriod_ns) == 110u);
  ThreadActivity busy;
  busy.on_sample(100, kPeriod_ns);
  busy.on_records_lost(110);
  CHECK_FALSE(busy.on_sample(120, kPeriod_ns));
}

TEST_CASE("Lost records do not move the moment at which a sleeping thread left") {
  ThreadActivity thread;
  thread.on_sample(100, kPeriod_ns);
  thread.on_switch_out(105);
  thread.on_records_lost(150);
  CHECK(thread.on_switch_in(200, kPeriod_ns) == 105u);
}
