#include "sampling/perf_sampler.h"

#include "os/clock.h"
#include "sampling/perf_attachment.h"
#include "sampling/record_counter.h"
#include "sampling/ring_merge.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include <linux/perf_event.h>

namespace sentry_prof::sampling {
namespace {

// Space is given back to the kernel in steps of this during a drain, not only at its end.
constexpr uint64_t kRelease_bytes = 256 * 1024;
// What was copied beside a sample may have a time before the sample's (kMaxCopying_ns).
constexpr uint64_t kOuterSlack_ns = 2 * kMaxCopying_ns;

// The process that an event belongs to, nothing for those of a ring.
std::optional<uint32_t> pid_of(const Event& event) {
  return std::visit(
      [](const auto& body) -> std::optional<uint32_t> {
        if constexpr (requires { body.pid; }) {
          return body.pid;
        } else {
          return std::nullopt;
        }
      },
      event.body);
}

class PerfSampler final : public Sampler, private RecordSink {
 public:
  PerfSampler(const SamplerOptions& options, const RecordLayout& layout, RecordTap* tap)
      : layout_(layout),
        attachment_(options),
        follows_children_(options.follow_children),
        tap_(tap) {}

  Result<void> attach(std::span<const pid_t> pids) override;
  Result<void> attach_before_exec(pid_t child) override;
  std::span<const int> poll_fds() const override { return poll_fds_; }
  void drain(EventSink& sink, bool is_final) override;
  void follow_outer_stack(uint32_t pid, uint32_t tid, uint64_t stack_end) override;
  void stop() override;
  const SamplerSetup& setup() const override { return attachment_.setup(); }
  const SamplerStats& stats() const override { return counter_.stats(); }

 private:
  void begin_reading(std::span<const pid_t> pids);
  void on_record(size_t ring, uint64_t time_ns, Bytes record) override;
  void on_consumed(size_t ring) override;
  RecordFate fate_of(const DecodedRecord& decoded);
  bool is_outside(const Event& event) const;
  bool is_duplicate(const SampleEvent& sample, uint64_t identifier);
  std::span<const StackPiece> outer_stack_of(const SampleEvent& sample, uint64_t time_ns);
  void release_outer_stacks_before(uint64_t time_ns);
  void tell_malformed(RingReader& reader);

  RecordLayout layout_;
  PerfAttachment attachment_;
  bool follows_children_;
  RecordTap* tap_;                   // null: nobody looks
  std::vector<RingReader> readers_;  // one for each ring
  std::vector<int> poll_fds_;
  std::unordered_set<uint32_t> attached_pids_;
  RingMerge merge_;
  DuplicateFilter duplicates_;
  RecordCounter counter_;
  EventSink* sink_ = nullptr;  // only during drain()
  uint64_t last_time_ns_ = 0;
};

Result<void> PerfSampler::attach(std::span<const pid_t> pids) {
  auto attached = attachment_.attach(pids, duplicates_);
  if (attached) begin_reading(pids);
  return attached;
}

Result<void> PerfSampler::attach_before_exec(pid_t child) {
  auto attached = attachment_.attach_before_exec(child);
  if (attached) begin_reading(std::span(&child, 1));
  return attached;
}

void PerfSampler::begin_reading(std::span<const pid_t> pids) {
  for (pid_t pid : pids) attached_pids_.insert(static_cast<uint32_t>(pid));
  for (const PerfRing& ring : attachment_.rings()) {
    readers_.emplace_back(ring.data(), layout_);
    poll_fds_.push_back(ring.fd());
  }
}

void PerfSampler::drain(EventSink& sink, bool is_final) {
  // The time before the heads: what is older than it is then before the heads.
  const uint64_t limit_ns =
      is_final ? std::numeric_limits<uint64_t>::max() : os::monotonic_ns() - kPublishSlack_ns;
  if (!is_final) ++counter_.stats().wakeups;
  std::span<PerfRing> rings = attachment_.rings();
  for (size_t i = 0; i < readers_.size(); ++i) {
    readers_[i].set_range(rings[i].load_tail(), rings[i].load_head());
  }
  // After the heads: of each sample before them all blocks are there, and can be seen, but for
  // those behind one that a stalled CPU is still writing.
  if (attachment_.outer_stacks() != nullptr) attachment_.outer_stacks()->look();
  sink_ = &sink;
  merge_.merge(readers_, limit_ns, *this);
  for (size_t i = 0; i < readers_.size(); ++i) {
    tell_malformed(readers_[i]);
    rings[i].store_tail(readers_[i].tail());
  }
  release_outer_stacks_before(limit_ns);
  sink_ = nullptr;
}

// What the kernel copied beside the record.
std::span<const StackPiece> PerfSampler::outer_stack_of(const SampleEvent& sample,
                                                        uint64_t time_ns) {
  OuterStacks* const outer_stacks = attachment_.outer_stacks();
  if (outer_stacks == nullptr) return {};
  const auto place = place_of(sample.registers);
  if (!place) return {};
  return outer_stacks->pieces_of({sample.tid, place->stack_pointer, place->pc, time_ns});
}

// No sample that is older will come.
void PerfSampler::release_outer_stacks_before(uint64_t time_ns) {
  OuterStacks* const outer_stacks = attachment_.outer_stacks();
  if (outer_stacks == nullptr) return;
  outer_stacks->release_before(time_ns - std::min(time_ns, kOuterSlack_ns));
}

void PerfSampler::follow_outer_stack(uint32_t pid, uint32_t tid, uint64_t stack_end) {
  if (attachment_.outer_stacks() != nullptr) {
    attachment_.outer_stacks()->follow(pid, tid, stack_end);
  }
}

void PerfSampler::on_record(size_t, uint64_t time_ns, Bytes record) {
  last_time_ns_ = time_ns;
  DecodedRecord decoded = decode_record(layout_, record);
  const uint64_t own_time_ns = decoded.event.time_ns;
  decoded.event.time_ns = time_ns;
  if (const auto* exited = std::get_if<ExitEvent>(&decoded.event.body)) {
    duplicates_.forget_thread(exited->tid);
  } else if (const auto* born = std::get_if<ForkEvent>(&decoded.event.body)) {
    duplicates_.note_birth(born->tid);
  }
  const RecordFate fate = fate_of(decoded);
  std::span<const StackPiece> outer_stack;
  if (auto* const sample = std::get_if<SampleEvent>(&decoded.event.body)) {
    outer_stack = sample->outer_stack = outer_stack_of(*sample, own_time_ns);
  }
  counter_.count(read_record_header(record), decoded);
  counter_.count_fate(decoded, fate);
  if (tap_ != nullptr) tap_->on_record(time_ns, fate, record, outer_stack);
  if (fate == RecordFate::HandedOn) sink_->on_event(decoded.event);
}

void PerfSampler::on_consumed(size_t ring) {
  PerfRing& kernel_ring = attachment_.rings()[ring];
  const uint64_t tail = readers_[ring].tail();
  if (tail - kernel_ring.load_tail() < kRelease_bytes) return;
  kernel_ring.store_tail(tail);
  release_outer_stacks_before(last_time_ns_);
}

RecordFate PerfSampler::fate_of(const DecodedRecord& decoded) {
  if (!decoded.is_known_type) return RecordFate::Unknown;
  if (is_outside(decoded.event)) return RecordFate::Outside;
  const auto* sample = std::get_if<SampleEvent>(&decoded.event.body);
  if (sample == nullptr || !is_duplicate(*sample, decoded.identifier)) return RecordFate::HandedOn;
  return RecordFate::Duplicate;
}

// Kernels before 5.13 let new processes inherit as well, and all of them tell of a fork.
bool PerfSampler::is_outside(const Event& event) const {
  if (follows_children_) return false;
  const std::optional<uint32_t> pid = pid_of(event);
  return pid && !attached_pids_.contains(*pid);
}

bool PerfSampler::is_duplicate(const SampleEvent& sample, uint64_t identifier) {
  const auto verdict = duplicates_.judge(sample.tid, sample.cpu, identifier);
  if (verdict.superfluous_event) attachment_.events()->close_late_event(*verdict.superfluous_event);
  return verdict.is_duplicate;
}

// What stood behind an impossible record of a ring is not readable.
void PerfSampler::tell_malformed(RingReader& reader) {
  const uint64_t count = reader.take_malformed();
  counter_.count_malformed(count);
  for (uint64_t i = 0; i < count; ++i) sink_->on_event({last_time_ns_, UndecodableEvent{}});
}

void PerfSampler::stop() {
  ThreadEvents* events = attachment_.events();
  if (events == nullptr) return;
  const EventTotals totals = events->end_and_read();
  counter_.set_lost_by_events(totals.lost);
  counter_.stats().on_cpu_ns = totals.on_cpu_ns;
  // Pausing ends all at one moment; closing thousands of events takes some 10 ms as well.
  for (PerfRing& ring : attachment_.rings()) ring.pause();
  events->close_sampling();
  counter_.stats().cpus_not_sampled = attachment_.cpus_without_ring();
}

}  // namespace

std::unique_ptr<Sampler> make_perf_sampler(const SamplerOptions& options, RecordTap* tap) {
  // Cannot fail: these are our own bits, and all of them have a place.
  const auto layout = RecordLayout::create(common_sample_type(), user_register_mask(), true);
  return std::make_unique<PerfSampler>(options, *layout, tap);
}

}  // namespace sentry_prof::sampling
