// Times the walk over the samples of a raw log: unwind_bench LOG. Prints "name value" lines.
//   first       each sample once, in order, nothing known: unwind tables are read, rules made
//   cold        each sample once more: the rules are known, the stacks are not in the cache
//   warm        each sample many times in a row
// The same with what is remembered of each thread's last walk as "..._remembered". All in ns a
// frame. slowest_walk_ms: the longest of the first ones, which reads the largest tables.
#include "os/clock.h"
#include "os/file.h"
#include "recorder/mapping_facts.h"
#include "recorder/raw_log.h"
#include "recorder/register_mapping.h"
#include "recorder/replay.h"
#include "unwind/walk.h"

#include <algorithm>
#include <ctime>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

using namespace sentry_prof;

namespace {

constexpr int kRepetitions = 20;
constexpr uint64_t kMaxLog_bytes = uint64_t{4} << 30;

// CPU time of this thread: what others do on the machine meanwhile does not count.
double cpu_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct StoredSample {
  uint32_t pid = 0;
  uint32_t tid = 0;
  unwind::Registers registers;
  Bytes stack;  // in the log
  bool stack_is_cut = false;
  const unwind::ModuleMap* modules = nullptr;
};

// Keeps the samples of a log, and each state of the maps that one was taken in.
class Collector final : public sampling::EventSink {
 public:
  explicit Collector(const recorder::RawLog& log)
      : opener_(recorder::make_replay_opener(log)),
        images_(*opener_),
        processes_(images_),
        dwarf_numbers_(recorder::dwarf_numbers_of(log.session.setup.register_mask)) {}

  void on_snapshot(const target::ProcessSnapshot& snapshot) { processes_.on_snapshot(snapshot); }

  void on_event(const sampling::Event& event) override {
    std::visit([&](const auto& body) { on_body(event.time_ns, body); }, event.body);
  }

  const std::vector<StoredSample>& samples() const { return samples_; }

 private:
  void on_body(uint64_t, const sampling::SampleEvent& sample) {
    if (!sample.registers.is_present || sample.registers.is_32_bit) return;
    const unwind::ModuleMap& now = processes_.process(sample.pid).modules;
    const unwind::ModuleMap& kept = maps_.try_emplace(now.version(), now).first->second;
    samples_.push_back({sample.pid, sample.tid,
                        recorder::to_registers(sample.registers, dwarf_numbers_), sample.stack,
                        sample.stack_is_cut, &kept});
  }
  void on_body(uint64_t time_ns, const sampling::MapEvent& map) {
    processes_.on_map(time_ns, recorder::mapping_facts_of(map));
  }
  void on_body(uint64_t time_ns, const sampling::CommEvent& comm) {
    processes_.on_comm(comm.pid, comm.tid, comm.name, comm.is_exec, time_ns);
  }
  void on_body(uint64_t time_ns, const sampling::ForkEvent& fork) {
    processes_.on_fork(fork.pid, fork.tid, fork.parent_pid, fork.parent_tid, time_ns);
  }
  void on_body(uint64_t, const sampling::ExitEvent& exit) {
    processes_.on_exit(exit.pid, exit.tid);
  }
  void on_body(uint64_t, const auto&) {}

  std::unique_ptr<target::ImageOpener> opener_;
  target::ImageStore images_;
  target::ProcessTable processes_;
  std::vector<uint8_t> dwarf_numbers_;
  std::map<uint64_t, unwind::ModuleMap> maps_;  // by version
  std::vector<StoredSample> samples_;
};

void play(const recorder::RawLog& log, Collector& collector) {
  const auto layout = sampling::RecordLayout::create(
      log.session.setup.sample_type, log.session.setup.register_mask, log.session.has_trailer);
  if (!layout) throw std::runtime_error(layout.error().message);
  sampling::RecordPlayer player(*layout);
  for (const recorder::RawStep& step : log.steps) {
    if (step.kind == recorder::RawEntry::Snapshot) {
      const auto& snapshot = log.snapshots[*step.snapshot];
      if (snapshot) collector.on_snapshot(*snapshot);
    } else if (step.kind == recorder::RawEntry::Record) {
      player.play(step.time_ns, step.fate, step.record, collector);
    }
  }
}

struct Figures {
  double ns = 0;
  uint64_t frames = 0;
  uint64_t walks = 0;
  uint64_t complete = 0;

  double slowest_ns = 0;

  double ns_a_frame() const { return frames == 0 ? 0 : ns / static_cast<double>(frames); }
};

class Bench {
 public:
  explicit Bench(const std::vector<StoredSample>& samples) : samples_(samples) {}

  void print(const char* suffix, bool is_remembering) {
    unwind::Unwinder unwinder(recorder::native_arch());
    is_remembering_ = is_remembering;
    const Figures first = each_once(unwinder);
    const Figures cold = each_once(unwinder);
    const Figures warm = each_many_times(unwinder);
    fmt::print("first{0} {1:.1f}\ncold{0} {2:.1f}\nwarm{0} {3:.1f}\n", suffix, first.ns_a_frame(),
               cold.ns_a_frame(), warm.ns_a_frame());
    if (is_remembering) return;
    fmt::print("samples {}\ncomplete {}\nframes_a_sample {:.1f}\nslowest_walk_ms {:.2f}\n",
               cold.walks, cold.complete,
               static_cast<double>(cold.frames) / static_cast<double>(cold.walks),
               first.slowest_ns / 1e6);
  }

 private:
  unwind::Walk walk(unwind::Unwinder& unwinder, const StoredSample& sample) {
    const unsigned sp = unwind::arch_registers(recorder::native_arch()).stack_pointer;
    return unwinder.walk(
        sample.registers, {{sample.registers.get(sp)}, sample.stack, sample.stack_is_cut},
        *sample.modules, is_remembering_ ? &memories_->of(sample.pid, sample.tid) : nullptr);
  }

  static void count(const unwind::Walk& walk, Figures& figures) {
    figures.frames += walk.frames.size();
    ++figures.walks;
    figures.complete += walk.is_complete() ? 1 : 0;
  }

  Figures each_once(unwind::Unwinder& unwinder) {
    memories_ = std::make_unique<unwind::WalkMemories>();
    Figures figures;
    const double begin_ns = cpu_now_ns();
    for (const StoredSample& sample : samples_) {
      const uint64_t walk_begin_ns = os::monotonic_ns();
      count(walk(unwinder, sample), figures);
      figures.slowest_ns =
          std::max(figures.slowest_ns, static_cast<double>(os::monotonic_ns() - walk_begin_ns));
    }
    figures.ns = cpu_now_ns() - begin_ns;
    return figures;
  }

  Figures each_many_times(unwind::Unwinder& unwinder) {
    Figures figures;
    for (const StoredSample& sample : samples_) {
      walk(unwinder, sample);
      const double begin_ns = cpu_now_ns();
      for (int i = 0; i < kRepetitions; ++i) count(walk(unwinder, sample), figures);
      figures.ns += cpu_now_ns() - begin_ns;
    }
    return figures;
  }

  const std::vector<StoredSample>& samples_;
  bool is_remembering_ = false;
  std::unique_ptr<unwind::WalkMemories> memories_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: unwind_bench LOG");
  const auto bytes = os::read_small_file(argv[1], kMaxLog_bytes);
  if (!bytes) throw std::runtime_error(bytes.error().message);
  const auto log = recorder::read_raw_log(std::as_bytes(std::span(*bytes)));
  if (!log) throw std::runtime_error(log.error().message);
  Collector collector(*log);
  play(*log, collector);
  Bench bench(collector.samples());
  bench.print("", false);
  bench.print("_remembered", true);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "unwind_bench: {}\n", error.what());
  return 1;
}
