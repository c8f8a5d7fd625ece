// The events of a perf.data file: which of them wrote a record, and how it is laid out. Pure.
#pragma once

#include "formats/perf_data_header.h"
#include "sampling/record_decoder.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sentry_prof::formats {

// Whether a record can have this time: perf's own have 0, or all bits set. More than 292 years is
// damage.
constexpr bool is_perf_time(uint64_t time_ns) { return time_ns != 0 && time_ns <= INT64_MAX; }

// Whether it is one of the kernel's two clocks: a period of it is nanoseconds.
bool counts_nanoseconds(const perf_event_attr& attr);
// Whether its samples stand for time on a CPU: the two clocks, and cycles.
bool counts_time(const perf_event_attr& attr);
// Whether they are known to stand for something else; what raw events count only their names say.
bool counts_no_time(const perf_event_attr& attr);

class PerfEventTable {
 public:
  // One event more. Takes time for its ids only.
  void add(const PerfEvent& event);
  // Whether records can be read with the events so far. Unsupported, with the next step: no event
  // has user registers and stacks; records do not tell their events apart; samples without thread
  // or time.
  Result<void> check() const;
  bool is_usable() const { return !with_stacks_.empty() && problem_.empty() && are_told_apart(); }
  // Events that were added.
  size_t size() const { return size_; }

  static constexpr size_t kUnknown = SIZE_MAX;
  // By the identifier in it. Records that perf wrote itself have none: kUnknown.
  size_t event_of(Bytes record) const;
  // kUnknown has the layout of the first event.
  const sampling::RecordLayout& layout_of(size_t event) const {
    return layouts_[event == kUnknown ? 0 : event];
  }
  // 0 if the record has none.
  uint64_t time_of(size_t event, Bytes record) const;
  // Once all are added and check() found nothing. `samples`: how many each event has; those that
  // are missing have none.
  void choose(const std::vector<uint64_t>& samples);
  // Of the events with user registers and stacks that have samples the first that counts time
  // (counts_time()); if none does, the first. If none has samples, the same of all.
  size_t sampled_event() const { return sampled_event_; }
  // Whether its samples are handed on: the sampled event, and those that count the same on cores of
  // another kind (cpu_core/cycles/ and cpu_atom/cycles/).
  bool is_sampled(size_t event) const { return event < is_sampled_.size() && is_sampled_[event]; }

 private:
  struct Candidate {
    size_t index = 0;
    perf_event_attr attr{};
  };

  bool are_told_apart() const { return layouts_.size() <= 1 || have_one_place_for_ids_; }

  std::vector<sampling::RecordLayout> layouts_;
  // Ordered: the file chooses the ids, and could choose such as fall into one bucket.
  std::map<uint64_t, size_t> event_by_id_;
  size_t size_ = 0;
  std::vector<Candidate> with_stacks_;
  size_t sampled_event_ = kUnknown;
  std::vector<bool> is_sampled_;  // by event; of each kind of cores one is
  bool have_chains_ = false;
  bool have_one_place_for_ids_ = true;
  std::string problem_;  // of the first event that cannot be read; those after it do not matter
};

}  // namespace sentry_prof::formats
