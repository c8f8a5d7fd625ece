// Times the walk over the samples of a raw log: unwind_bench LOG. Prints "name value" lines.
//   first       each sample once, in order, nothing known: unwind tables are read, rules made
//   cold        each sample once more: the rules are known, the stacks are not in the cache
//   warm        each sample many times in a row
// The same with what is remembered of each thread's last walk as "..._remembered". All in ns a
// frame. slowest_walk_ms: the longest of the first ones, which reads the largest tables.
#include "raw_log_samples.h"
#include "recorder/register_mapping.h"
#include "timed_walks.h"
#include "unwind/walk.h"

#include <exception>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>

using namespace sentry_prof;
using namespace sentry_prof::bench;

namespace {

class Bench {
 public:
  explicit Bench(const std::vector<StoredSample>& samples) : samples_(samples) {}

  void print(const char* suffix, bool is_remembering) {
    unwind::Unwinder unwinder(recorder::native_arch());
    is_remembering_ = is_remembering;
    const auto walk_once = [&](const StoredSample& sample) { return walk(unwinder, sample); };
    forget();
    const WalkFigures first = walk_each_once(samples_, walk_once);
    forget();
    const WalkFigures cold = walk_each_once(samples_, walk_once);
    const WalkFigures warm = walk_each_many_times(samples_, walk_once);
    fmt::print("first{0} {1:.1f}\ncold{0} {2:.1f}\nwarm{0} {3:.1f}\n", suffix, first.ns_a_frame(),
               cold.ns_a_frame(), warm.ns_a_frame());
    if (is_remembering) return;
    fmt::print("samples {}\ncomplete {}\nframes_a_sample {:.1f}\nslowest_walk_ms {:.2f}\n",
               cold.walks, cold.complete, cold.frames_a_sample(), first.slowest_ns / 1e6);
  }

 private:
  WalkResult walk(unwind::Unwinder& unwinder, const StoredSample& sample) {
    const unwind::Walk walk =
        unwinder.walk(sample.registers, sample.stack_snapshot(), *sample.modules,
                      is_remembering_ ? &memories_->of(sample.pid, sample.tid) : nullptr);
    return {walk.frames.size(), walk.is_complete()};
  }

  void forget() { memories_ = std::make_unique<unwind::WalkMemories>(); }

  const std::vector<StoredSample>& samples_;
  bool is_remembering_ = false;
  std::unique_ptr<unwind::WalkMemories> memories_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: unwind_bench LOG");
  const RawLogSamples log(argv[1]);
  Bench bench(log.samples());
  bench.print("", false);
  bench.print("_remembered", true);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "unwind_bench: {}\n", error.what());
  return 1;
}
