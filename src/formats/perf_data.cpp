#include "formats/perf_data.h"

#include "formats/time_span.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sentry_prof::formats {

namespace {

// Which paths were more than one file: replaced while perf recorded, or of several containers.
// perf's list of build ids knows paths only.
class MappedFiles {
 public:
  void add(const sampling::MapEvent& map) {
    const bool has_room = files_.size() < kMaxPerfBuildIds &&
                          paths_bytes_ + map.path.size() <= kMaxPerfBuildIdPaths_bytes;
    if (map.inode == 0 || !has_room) return;
    const File file{map.device_major, map.device_minor, map.inode};
    const auto [known, is_new] = files_.try_emplace(std::string(map.path), file);
    if (is_new) {
      paths_bytes_ += map.path.size();
    } else if (known->second != file) {
      known->second = kSeveral;
    }
  }
  bool is_several(const std::string& path) const {
    const auto found = files_.find(path);
    return found != files_.end() && found->second == kSeveral;
  }

 private:
  using File = std::tuple<uint32_t, uint32_t, uint64_t>;
  static constexpr File kSeveral{0, 0, 0};

  std::map<std::string, File> files_;  // the file chooses the paths: no hash table
  size_t paths_bytes_ = 0;
};

// The first reading: what pipes tell of the file between its records, and the limits of time.
class Surveyor {
 public:
  explicit Surveyor(PerfDataHeader& header) : header_(header) {}

  void on_record(Bytes record) {
    const uint32_t type = sampling::read_record_header(record).type;
    const Bytes payload = record.subspan(sampling::RecordHeader::kSize_bytes);
    if (type == kPerfHeaderAttr) add_perf_attr(payload, header_);
    if (type == kPerfHeaderFeature) add_perf_feature(payload, header_);
    if (type == kPerfHeaderBuildId) add_perf_build_id(record, header_);
    if (type < kFirstPerfUserRecord) on_kernel_record(type, record);
  }

  PerfDataSurvey survey() const {
    PerfDataSurvey survey;
    survey.first_time_ns = times_.first_ns();
    survey.last_time_ns = times_.last_ns();
    survey.main_pid = main_pid_;
    return survey;
  }
  // Leaves those of perf's build ids that can be of one file only.
  void drop_doubtful_build_ids() {
    std::map<std::string_view, const PerfBuildId*> first;
    std::set<std::string, std::less<>> doubtful;
    for (const PerfBuildId& entry : header_.build_ids) {
      const auto known = first.try_emplace(entry.path, &entry).first;
      const bool is_other = known->second->build_id != entry.build_id;
      if (is_other || files_.is_several(entry.path)) doubtful.insert(entry.path);
    }
    std::erase_if(header_.build_ids,
                  [&](const PerfBuildId& entry) { return doubtful.contains(entry.path); });
  }

  // Of the events that are known by now, if there are any: before gigabytes of records are read in
  // vain.
  Result<void> check_events() {
    if (header_.events.empty()) return {};  // of a pipe, which tells of them between its records
    complete_table();
    return table_.check();
  }

  // Of all events that the file tells of. After that survey() knows the main process.
  Result<PerfEventTable> finish_table() {
    complete_table();
    if (auto ok = table_.check(); !ok) return tl::unexpected(std::move(ok.error()));
    table_.choose(samples_);
    choose_main_pid();
    return std::move(table_);
  }

 private:
  struct FirstSample {
    uint64_t number = 0;  // among all
    uint32_t pid = 0;     // of a process with user state; 0: none
  };

  // Only those that came since: pipes may tell of an event between any two records.
  void complete_table() {
    while (table_.size() < header_.events.size()) table_.add(header_.events[table_.size()]);
  }

  void on_kernel_record(uint32_t type, Bytes record) {
    complete_table();
    if (!table_.is_usable()) return;
    const size_t event = table_.event_of(record);
    const uint64_t time_ns = table_.time_of(event, record);
    if (is_perf_time(time_ns)) times_.add(time_ns);
    if (type == PERF_RECORD_SAMPLE && event < table_.size()) on_sample(event, record);
    if (type == PERF_RECORD_MMAP2) on_mapping(event, record);
  }

  void on_sample(size_t event, Bytes record) {
    ++samples_in_all_;
    samples_.resize(table_.size());
    firsts_.resize(table_.size());
    ++samples_[event];
    if (firsts_[event].pid == 0) firsts_[event] = {samples_in_all_, pid_of(event, record)};
  }

  void choose_main_pid() {
    FirstSample first{.number = UINT64_MAX};
    for (size_t event = 0; event < firsts_.size(); ++event) {
      const bool is_earlier = firsts_[event].pid != 0 && firsts_[event].number < first.number;
      if (is_earlier && table_.is_sampled(event)) first = firsts_[event];
    }
    main_pid_ = first.pid;
  }

  void on_mapping(size_t event, Bytes record) {
    const auto decoded = sampling::decode_record(table_.layout_of(event), record);
    if (const auto* map = std::get_if<sampling::MapEvent>(&decoded.event.body)) files_.add(*map);
  }

  // 0 of a sample that has no user state, as those of the kernel's own threads (perf record -a).
  uint32_t pid_of(size_t event, Bytes record) const {
    const auto decoded = sampling::decode_record(table_.layout_of(event), record);
    const auto* sample = std::get_if<sampling::SampleEvent>(&decoded.event.body);
    const bool is_of_user = sample != nullptr && sample->registers.is_present;
    return is_of_user && sample->pid != UINT32_MAX ? sample->pid : 0;
  }

  PerfDataHeader& header_;
  // By event.
  std::vector<uint64_t> samples_;
  std::vector<FirstSample> firsts_;
  uint64_t samples_in_all_ = 0;
  uint32_t main_pid_ = 0;
  TimeSpan times_;
  MappedFiles files_;
  PerfEventTable table_;
};

}  // namespace

Result<PerfData> PerfData::open(const ByteSource& file, uint64_t max_expanded_bytes) {
  auto header = read_perf_header(file);
  if (!header) return tl::unexpected(header.error());
  Surveyor surveyor(*header);
  if (auto ok = surveyor.check_events(); !ok) return tl::unexpected(std::move(ok.error()));
  const PerfRecordRange range{header->data_offset, header->data_bytes, max_expanded_bytes};
  const auto end =
      for_each_perf_record(file, range, [&](Bytes record) { surveyor.on_record(record); });
  if (!end) return tl::unexpected(end.error());
  surveyor.drop_doubtful_build_ids();
  auto table = surveyor.finish_table();
  if (!table) return tl::unexpected(table.error());
  PerfDataSurvey survey = surveyor.survey();
  survey.end = *end;
  return PerfData(file, std::move(*header), std::move(*table), survey, range);
}

}  // namespace sentry_prof::formats
