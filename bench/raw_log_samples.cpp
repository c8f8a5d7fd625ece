#include "raw_log_samples.h"

#include "os/file.h"
#include "recorder/mapping_of_event.h"
#include "recorder/register_mapping.h"
#include "recorder/replay.h"

#include <map>
#include <stdexcept>
#include <variant>

namespace sentry_prof::bench {

namespace {

constexpr uint64_t kMaxLog_bytes = uint64_t{4} << 30;

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace

unwind::StackSnapshot StoredSample::stack_snapshot() const {
  const unsigned sp = unwind::arch_registers(recorder::native_arch()).stack_pointer;
  using Behind = unwind::StackSnapshot::Behind;
  return {{registers.get(sp)}, stack, stack_is_cut ? Behind::More : Behind::Nothing};
}

// Keeps the samples of a log, and each state of the maps that one was taken in.
class RawLogSamples::Collector final : public sampling::EventSink {
 public:
  explicit Collector(const recorder::RawLog& log)
      : opener_(recorder::make_replay_opener(log)),
        images_(*opener_),
        processes_(images_),
        dwarf_numbers_(recorder::dwarf_numbers_of(log.session.setup.register_mask)) {}

  void play(const recorder::RawLog& log) {
    sampling::RecordPlayer player(value_or_throw(sampling::RecordLayout::create(
        log.session.setup.sample_type, log.session.setup.register_mask, log.session.has_trailer)));
    for (const recorder::RawStep& step : log.steps) {
      if (step.kind == recorder::RawEntry::Snapshot) {
        const auto& snapshot = log.snapshots[*step.snapshot];
        if (snapshot) processes_.on_snapshot(*snapshot);
      } else if (step.kind == recorder::RawEntry::Record) {
        player.play(step.time_ns, step.fate, step.record, {}, *this);  // records alone are walked
      }
    }
  }

  void on_event(const sampling::Event& event) override {
    std::visit([&](const auto& body) { on_body(event.time_ns, body); }, event.body);
  }

  const std::vector<StoredSample>& samples() const { return samples_; }
  const target::ImageStore& images() const { return images_; }

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

RawLogSamples::RawLogSamples(const std::string& path)
    : bytes_(value_or_throw(os::read_small_file(path, kMaxLog_bytes))),
      log_(value_or_throw(recorder::read_raw_log(std::as_bytes(std::span(bytes_))))),
      collector_(std::make_unique<Collector>(log_)) {
  collector_->play(log_);
}

RawLogSamples::~RawLogSamples() = default;

const std::vector<StoredSample>& RawLogSamples::samples() const { return collector_->samples(); }

const target::ImageStore& RawLogSamples::images() const { return collector_->images(); }

}  // namespace sentry_prof::bench
