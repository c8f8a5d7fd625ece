#include "formats/perf_data.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sentry_prof::formats {

namespace {

// The first reading: what pipes tell of the file between its records, and the limits of time.
class Surveyor {
 public:
  explicit Surveyor(PerfDataHeader& header) : header_(header) {}

  void on_record(Bytes record) {
    const uint32_t type = sampling::read_record_header(record).type;
    const Bytes payload = record.subspan(sampling::RecordHeader::kSizeBytes);
    if (type == kPerfHeaderAttr) add_perf_attr(payload, header_);
    if (type == kPerfHeaderFeature) add_perf_feature(payload, header_);
    if (type == kPerfHeaderBuildId) add_perf_build_id(record, header_);
    if (type < kFirstPerfUserRecord) on_kernel_record(type, record);
  }

  PerfDataSurvey survey() const { return survey_; }
  // Of all events that the file tells of.
  Result<PerfEventTable> take_table() {
    complete_table();
    if (auto ok = table_.check(); !ok) return tl::unexpected(std::move(ok.error()));
    return std::move(table_);
  }

 private:
  // Only those that came since: pipes may tell of an event between any two records.
  void complete_table() {
    while (table_.size() < header_.events.size()) table_.add(header_.events[table_.size()]);
  }

  void on_kernel_record(uint32_t type, Bytes record) {
    complete_table();
    if (!table_.is_usable()) return;
    const size_t event = table_.event_of(record);
    const uint64_t time_ns = table_.time_of(event, record);
    if (is_perf_time(time_ns)) {
      const bool is_first = survey_.first_time_ns == 0;
      survey_.first_time_ns = is_first ? time_ns : std::min(survey_.first_time_ns, time_ns);
      survey_.last_time_ns = std::max(survey_.last_time_ns, time_ns);
    }
    const bool is_sample = type == PERF_RECORD_SAMPLE && event == table_.sampled_event();
    if (is_sample && survey_.main_pid == 0) survey_.main_pid = pid_of(event, record);
  }

  uint32_t pid_of(size_t event, Bytes sample) const {
    ByteReader in(sample, std::endian::native);
    in.skip(table_.layout_of(event).sample_tid_offset());
    return in.u32();
  }

  PerfDataHeader& header_;
  PerfDataSurvey survey_;
  PerfEventTable table_;
};

}  // namespace

Result<PerfData> PerfData::open(const ByteSource& file, uint64_t max_expanded_bytes) {
  auto header = read_perf_header(file);
  if (!header) return tl::unexpected(header.error());
  Surveyor surveyor(*header);
  const PerfRecordRange range{header->data_offset, header->data_bytes, max_expanded_bytes};
  const auto end =
      for_each_perf_record(file, range, [&](Bytes record) { surveyor.on_record(record); });
  if (!end) return tl::unexpected(end.error());
  auto table = surveyor.take_table();
  if (!table) return tl::unexpected(table.error());
  PerfDataSurvey survey = surveyor.survey();
  survey.end = header->is_cut_off && *end == PerfRecordsEnd::Whole ? PerfRecordsEnd::CutOff : *end;
  return PerfData(file, std::move(*header), std::move(*table), survey, range);
}

}  // namespace sentry_prof::formats
