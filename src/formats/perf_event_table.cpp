#include "formats/perf_event_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sentry_prof::formats {

namespace {

constexpr uint64_t kStackFields = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

bool has_stacks(const PerfEvent& event) {
  return (event.attr.sample_type & kStackFields) == kStackFields;
}

tl::unexpected<Error> fail_without_stacks(const std::vector<PerfEvent>& events) {
  const bool has_chains = std::any_of(events.begin(), events.end(), [](const PerfEvent& event) {
    return (event.attr.sample_type & PERF_SAMPLE_CALLCHAIN) != 0;
  });
  return fail(ErrorCode::Unsupported,
              has_chains
                  ? "it has call chains only (as of --call-graph fp or lbr), which this "
                    "version does not take. Record with: perf record --call-graph dwarf"
                  : "its samples have no stacks. Record with: perf record --call-graph dwarf");
}

Result<sampling::RecordLayout> layout_for(const PerfEvent& event) {
  sampling::RecordFields fields;
  fields.sample_type = event.attr.sample_type;
  fields.register_mask = event.attr.sample_regs_user;
  fields.has_trailer = event.attr.sample_id_all != 0;
  fields.read_format = event.attr.read_format;
  fields.branch_sample_type = event.attr.branch_sample_type;
  return sampling::RecordLayout::create(fields);
}

// From the end of the record; kAbsent if there is none.
uint16_t identifier_from_end(const sampling::RecordLayout& layout) {
  const uint16_t offset = layout.trailer_identifier_offset();
  if (offset == sampling::RecordLayout::kAbsent) return offset;
  return static_cast<uint16_t>(layout.trailer_bytes() - offset);
}

// Whether the identifier can be found without knowing the event.
bool have_one_place_for_ids(const std::vector<sampling::RecordLayout>& layouts) {
  const sampling::RecordLayout& first = layouts.front();
  return std::all_of(layouts.begin(), layouts.end(), [&](const sampling::RecordLayout& other) {
    return other.sample_identifier_offset() == first.sample_identifier_offset() &&
           identifier_from_end(other) == identifier_from_end(first) &&
           other.sample_identifier_offset() != sampling::RecordLayout::kAbsent;
  });
}

uint64_t load_u64(Bytes record, size_t offset) {
  uint64_t value = 0;
  if (offset <= record.size() && record.size() - offset >= sizeof value) {
    std::memcpy(&value, record.data() + offset, sizeof value);
  }
  return value;
}

}  // namespace

Result<PerfEventTable> PerfEventTable::create(const std::vector<PerfEvent>& events) {
  const auto sampled = std::find_if(events.begin(), events.end(), has_stacks);
  if (sampled == events.end()) return fail_without_stacks(events);
  PerfEventTable table;
  table.sampled_ = static_cast<size_t>(sampled - events.begin());
  for (const PerfEvent& event : events) {
    auto layout = layout_for(event);
    if (!layout) {
      return fail(ErrorCode::Unsupported,
                  "its event " + event.name + " has " + layout.error().message);
    }
    for (const uint64_t id : event.ids) table.event_by_id_.emplace(id, table.layouts_.size());
    table.layouts_.push_back(*layout);
  }
  if (events.size() > 1 && !have_one_place_for_ids(table.layouts_)) {
    return fail(ErrorCode::Unsupported,
                "its records do not tell their events apart. Record one event: perf record -e "
                "cpu-clock --call-graph dwarf");
  }
  return table;
}

size_t PerfEventTable::event_of(Bytes record) const {
  if (layouts_.size() == 1) return 0;
  const sampling::RecordLayout& layout = layouts_.front();
  uint64_t id = 0;
  if (sampling::read_record_header(record).type == PERF_RECORD_SAMPLE) {
    id = load_u64(record, layout.sample_identifier_offset());
  } else if (identifier_from_end(layout) <= record.size()) {
    id = load_u64(record, record.size() - identifier_from_end(layout));
  }
  const auto found = event_by_id_.find(id);
  return found == event_by_id_.end() ? kUnknown : found->second;
}

uint64_t PerfEventTable::time_of(size_t event, Bytes record) const {
  const uint16_t offset =
      sampling::record_time_offset(layout_of(event), sampling::read_record_header(record));
  return offset == sampling::RecordLayout::kAbsent ? 0 : load_u64(record, offset);
}

}  // namespace sentry_prof::formats
