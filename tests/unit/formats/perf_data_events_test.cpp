// Which of a file's events counts.
#include "support/catch2.h"
#include "support/perf_data_builder.h"
#include "unit/formats/played.h"

using namespace sentry_prof;
using namespace sentry_prof::formats;
using namespace sentry_prof::formats_test;
using namespace sentry_prof::test;

namespace {

perf_event_attr event_attr(uint32_t type, uint64_t config) {
  perf_event_attr attr = stack_attr();
  attr.type = type;
  attr.config = config;
  return attr;
}

}  // namespace

TEST_CASE("of several events the first with stacks counts") {
  perf_event_attr other = stack_attr();
  other.sample_type = kSampleType & ~uint64_t{PERF_SAMPLE_STACK_USER};
  const auto builder = PerfDataBuilder()
                           .event(other, {3})
                           .event(stack_attr(), {5, 6})
                           .event(stack_attr(), {7})
                           .record(stack_sample(3, 1, 100))
                           .record(stack_sample(5, 2, 200))
                           .record(stack_sample(6, 3, 300))
                           .record(stack_sample(7, 4, 400))
                           .record(stack_sample(99, 5, 500));
  const Played played = play(builder.file());
  CHECK(played.sink.sample_tids == Tids{2, 3});
  CHECK(played.figures.samples_of_other_events == 2);
  CHECK(played.figures.stats.sample_records == 3);
  CHECK(played.figures.stats.undecodable_samples == 1);  // nobody's
  CHECK(played.survey.main_pid == 2);
}

TEST_CASE("of several events with stacks the first that counts time counts") {
  perf_event_attr faults = stack_attr();
  faults.type = PERF_TYPE_SOFTWARE;
  faults.config = PERF_COUNT_SW_PAGE_FAULTS;
  perf_event_attr cycles = stack_attr();
  cycles.type = PERF_TYPE_HARDWARE;
  cycles.config = (uint64_t{4} << 32) | PERF_COUNT_HW_CPU_CYCLES;  // of one kind of cores
  perf_event_attr clock = stack_attr();
  clock.type = PERF_TYPE_SOFTWARE;
  clock.config = PERF_COUNT_SW_CPU_CLOCK;
  const auto builder = PerfDataBuilder()
                           .event(faults, {3})
                           .event(cycles, {5})
                           .event(clock, {7})
                           .record(stack_sample(3, 1, 100))
                           .record(stack_sample(5, 2, 200))
                           .record(stack_sample(7, 3, 300));
  const Played played = play(builder.file());
  CHECK(played.sink.sample_tids == Tids{2});
  CHECK(played.figures.samples_of_other_events == 2);
}

TEST_CASE("of several events with stacks one that has samples counts") {
  const auto builder = PerfDataBuilder()
                           .event(event_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES), {3})
                           .event(event_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS), {5})
                           .event(event_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK), {7});
  const Played of_faults = play(PerfDataBuilder(builder).record(stack_sample(5, 2, 200)).file());
  CHECK(of_faults.sink.sample_tids == Tids{2});
  CHECK(of_faults.survey.main_pid == 2);
  const Played of_time = play(PerfDataBuilder(builder)
                                  .record(stack_sample(5, 2, 200))
                                  .record(stack_sample(7, 3, 300))
                                  .file());
  CHECK(of_time.sink.sample_tids == Tids{3});
  CHECK(of_time.survey.main_pid == 3);
  CHECK(of_time.figures.samples_of_other_events == 1);
}

TEST_CASE("events that count the same on cores of two kinds count together") {
  constexpr uint64_t kBig = uint64_t{4} << 32, kLittle = uint64_t{10} << 32;
  const auto cycles = [](uint64_t core) {
    return event_attr(PERF_TYPE_HARDWARE, core | PERF_COUNT_HW_CPU_CYCLES);
  };
  perf_event_attr other_registers = cycles(uint64_t{11} << 32);
  other_registers.sample_regs_user = 2;
  const Played played =
      play(PerfDataBuilder()
               .event(cycles(kBig), {3})
               .event(cycles(kLittle), {5})
               .event(event_attr(PERF_TYPE_HARDWARE, kLittle | PERF_COUNT_HW_INSTRUCTIONS), {6})
               .event(cycles(kLittle), {7})  // what is counted twice would be drawn twice
               .event(other_registers, {8})
               .record(stack_sample(5, 1, 100))
               .record(stack_sample(3, 2, 200))
               .record(stack_sample(6, 3, 300))
               .record(stack_sample(7, 4, 400))
               .record(stack_sample(8, 5, 500))
               .file());
  CHECK(played.sink.sample_tids == Tids{1, 2});
  CHECK(played.survey.main_pid == 1);
  CHECK(played.figures.samples_of_other_events == 3);
  const Played of_two =
      play(PerfDataBuilder()
               .event(event_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK), {3})
               .event(event_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK), {5})
               .record(stack_sample(3, 1, 100))
               .record(stack_sample(5, 2, 200))
               .file());
  CHECK(of_two.sink.sample_tids == Tids{1});
}
