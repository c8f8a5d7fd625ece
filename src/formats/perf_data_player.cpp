// The second reading of a perf.data file: its records become events.
#include "formats/perf_data.h"
#include "formats/perf_data_order.h"
#include "sampling/record_counter.h"

#include <algorithm>
#include <map>
#include <utility>

namespace sentry_prof::formats {

namespace {

using sampling::RecordFate;

// The pid of mappings of the kernel, which belong to no process.
constexpr uint32_t kKernelPid = UINT32_MAX;
// The idle tasks, of which each CPU has one; and what perf's pid namespace does not know.
constexpr uint32_t kIdlePid = 0;

// Marks, and what the survey has read.
bool is_taken_by_reader(uint32_t type) {
  return type == kPerfHeaderAttr || type == kPerfHeaderFeature || type == kPerfHeaderBuildId ||
         type == kPerfFinishedRound || type == kPerfFinishedInit;
}

class Player {
 public:
  Player(const PerfDataHeader& header, const PerfEventTable& table, const PerfDataSurvey& survey,
         sampling::EventSink& sink, const std::function<bool()>& is_wanted)
      : table_(table),
        sink_(sink),
        is_wanted_(is_wanted),
        survey_(survey),
        last_time_ns_(survey.first_time_ns),
        order_([this](uint64_t time_ns, size_t event, Bytes record) {
          hand_on(time_ns, event, record, Time::Own);
        }) {
    for (const PerfBuildId& entry : header.build_ids) build_ids_.emplace(entry.path, &entry);
  }

  void on_record(Bytes record) {
    if (!is_wanted_()) return;
    const sampling::RecordHeader header = sampling::read_record_header(record);
    if (header.type == kPerfFinishedRound) order_.finish_round();
    if (sampling::is_event_type(header.type)) {
      on_event_record(header, record);
    } else if (!is_taken_by_reader(header.type)) {
      ++figures_.skipped[name_of_perf_record(header.type)];
    }
  }

  PerfDataFigures finish(PerfRecordsEnd end) {
    order_.finish();
    if (end != PerfRecordsEnd::Whole) counter_.count_malformed(1);
    figures_.late_records = order_.late_records();
    figures_.stats = counter_.stats();
    // From Linux 6.1 on perf adds at the end what the events themselves counted as lost, among it
    // the samples that the kernel told of in the midst of the others. Without, all that is known is
    // how many records there were, nearly all of them samples.
    const uint64_t samples = lost_samples_ != 0 ? lost_samples_ : lost_records_;
    figures_.stats.lost_samples = samples;
    figures_.stats.lost_records = lost_records_ - std::min(lost_records_, samples);
    return std::move(figures_);
  }

 private:
  enum class Time : uint8_t { Own, Damaged, None };

  void on_event_record(const sampling::RecordHeader& header, Bytes record) {
    const size_t event = table_.event_of(record);
    const bool is_sample = header.type == PERF_RECORD_SAMPLE;
    if (is_sample && !table_.is_sampled(event) && event != PerfEventTable::kUnknown) {
      ++figures_.samples_of_other_events;
      return;
    }
    const uint64_t time_ns = table_.time_of(event, record);
    if (is_damaged(time_ns)) {
      hand_on(last_time_ns_, event, record, Time::Damaged);
    } else if (is_perf_time(time_ns)) {
      order_.add(time_ns, event, record);
    } else {
      // What perf wrote itself: the state at the beginning, or a sum at the end.
      hand_on(last_time_ns_, event, record, Time::None);
    }
  }

  // One such time would end the order: what comes after it is all younger, or all older.
  bool is_damaged(uint64_t time_ns) const {
    return is_perf_time(time_ns) &&
           (time_ns < survey_.first_time_ns || time_ns > survey_.last_time_ns);
  }

  void hand_on(uint64_t time_ns, size_t event, Bytes record, Time time) {
    if (!is_wanted_()) return;
    last_time_ns_ = std::max(last_time_ns_, time_ns);
    const sampling::RecordHeader header = sampling::read_record_header(record);
    sampling::DecodedRecord decoded = sampling::decode_record(table_.layout_of(event), record);
    const bool is_of_nobody =
        header.type == PERF_RECORD_SAMPLE && event == PerfEventTable::kUnknown;
    if (is_of_nobody || time == Time::Damaged)
      decoded.event.body = sampling::UndecodableEvent{header.type};
    decoded.event.time_ns = last_time_ns_;
    const auto* sample = std::get_if<sampling::SampleEvent>(&decoded.event.body);
    if (sample != nullptr && sample->pid == kIdlePid) {
      ++figures_.idle_samples;
      return;
    }
    if (is_of_filter(header, decoded.event)) {
      if (may_be_of_ours(event)) {
        const uint64_t count = std::get<sampling::LostEvent>(decoded.event.body).count;
        figures_.filtered_samples = sampling::sum_of_lost(figures_.filtered_samples, count);
      }
      return;
    }
    counter_.count(header, decoded);
    counter_.count_fate(decoded, RecordFate::HandedOn);
    count_lost(header, event, decoded.event);
    if (auto* map = std::get_if<sampling::MapEvent>(&decoded.event.body)) {
      if (map->pid == kKernelPid) {
        ++figures_.kernel_mappings;
        return;
      }
      complete(*map);
    }
    // A sum says nothing of a moment, and would overtake what is held.
    if (header.type == PERF_RECORD_LOST_SAMPLES && time == Time::None) return;
    sink_.on_event(decoded.event);
  }

  // perf's own sum of what its filter did not want has a bit in the header that the kernel's record
  // of lost samples has not (PERF_RECORD_MISC_LOST_SAMPLES_BPF).
  static bool is_of_filter(const sampling::RecordHeader& header, const sampling::Event& event) {
    return header.type == PERF_RECORD_LOST_SAMPLES &&
           (header.misc & ~PERF_RECORD_MISC_CPUMODE_MASK) != 0 &&
           std::holds_alternative<sampling::LostEvent>(event.body);
  }

  // Of the event that is converted.
  bool may_be_of_ours(size_t event) const {
    return table_.is_sampled(event) || event == PerfEventTable::kUnknown;
  }

  void count_lost(const sampling::RecordHeader& header, size_t event,
                  const sampling::Event& decoded) {
    const auto* lost = std::get_if<sampling::LostEvent>(&decoded.body);
    if (lost == nullptr) return;
    if (header.type == PERF_RECORD_LOST) {
      lost_records_ = sampling::sum_of_lost(lost_records_, lost->count);
    } else if (may_be_of_ours(event)) {
      lost_samples_ = sampling::sum_of_lost(lost_samples_, lost->count);
    }
  }

  // perf's list has what the file was at the end of the recording; of paths that were several files
  // PerfData::open() has taken it away.
  void complete(sampling::MapEvent& map) const {
    if (map.build_id_size_bytes != 0) return;
    const auto found = build_ids_.find(map.path);
    if (found == build_ids_.end()) return;
    const std::vector<std::byte>& build_id = found->second->build_id;
    std::copy(build_id.begin(), build_id.end(), map.build_id.begin());
    map.build_id_size_bytes = static_cast<uint8_t>(build_id.size());
  }

  const PerfEventTable& table_;
  sampling::EventSink& sink_;
  const std::function<bool()>& is_wanted_;
  const PerfDataSurvey& survey_;
  uint64_t last_time_ns_;
  PerfRecordOrder order_;
  sampling::RecordCounter counter_;
  PerfDataFigures figures_;
  uint64_t lost_records_ = 0;  // of any kind, by PERF_RECORD_LOST
  uint64_t lost_samples_ = 0;  // by PERF_RECORD_LOST_SAMPLES
  // By path, of the header. The file chooses the paths: no hash table.
  std::map<std::string_view, const PerfBuildId*> build_ids_;
};

}  // namespace

Result<PerfDataFigures> PerfData::play(sampling::EventSink& sink,
                                       const std::function<bool()>& is_wanted) const {
  Player player(header_, table_, survey_, sink, is_wanted);
  const auto end = for_each_perf_record(
      *file_, range_, [&](Bytes record) { player.on_record(record); }, is_wanted);
  if (!end) return tl::unexpected(end.error());
  return player.finish(survey_.end);
}

}  // namespace sentry_prof::formats
