#include "formats/perf_event_table.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace sentry_prof::formats {

namespace {

constexpr uint64_t kStackFields = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

bool has_stacks(const PerfEvent& event) {
  return (event.attr.sample_type & kStackFields) == kStackFields;
}

tl::unexpected<Error> fail_without_stacks(bool have_chains) {
  return fail(ErrorCode::Unsupported,
              have_chains
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
  fields.asks_build_ids = event.attr.build_id != 0;
  return sampling::RecordLayout::create(fields);
}

// perf leaves the time out where it takes the records to be in order (--per-thread).
std::string problem_of(const PerfEvent& event, const Error& error) {
  constexpr uint64_t kThreadAndTime = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  const bool lacks_time_only = (event.attr.sample_type & kThreadAndTime) == PERF_SAMPLE_TID;
  return "the samples of its event " + event.name + " have " +
         (lacks_time_only ? "no time. Record with: perf record -T"
                          : "what is not read: " + error.message);
}

// From the end of the record; kAbsent if there is none.
uint16_t identifier_from_end(const sampling::RecordLayout& layout) {
  const uint16_t offset = layout.trailer_identifier_offset();
  if (offset == sampling::RecordLayout::kAbsent) return offset;
  return static_cast<uint16_t>(layout.trailer_bytes() - offset);
}

// Whether the identifier can be found without knowing which of both events it is.
bool are_ids_in_one_place(const sampling::RecordLayout& a, const sampling::RecordLayout& b) {
  return a.sample_identifier_offset() == b.sample_identifier_offset() &&
         identifier_from_end(a) == identifier_from_end(b) &&
         a.sample_identifier_offset() != sampling::RecordLayout::kAbsent;
}

// On machines with several kinds of cores the upper half says which (PERF_PMU_TYPE_SHIFT).
uint32_t what_is_counted(const perf_event_attr& attr) { return static_cast<uint32_t>(attr.config); }
uint32_t cores_of(const perf_event_attr& attr) { return static_cast<uint32_t>(attr.config >> 32); }

bool count_the_same(const perf_event_attr& a, const perf_event_attr& b) {
  return a.type == PERF_TYPE_HARDWARE && b.type == PERF_TYPE_HARDWARE &&
         what_is_counted(a) == what_is_counted(b) && a.sample_regs_user == b.sample_regs_user;
}

uint64_t load_u64(Bytes record, size_t offset) {
  uint64_t value = 0;
  if (offset <= record.size() && record.size() - offset >= sizeof value) {
    std::memcpy(&value, record.data() + offset, sizeof value);
  }
  return value;
}

}  // namespace

bool counts_nanoseconds(const perf_event_attr& attr) {
  const uint32_t what = what_is_counted(attr);
  return attr.type == PERF_TYPE_SOFTWARE &&
         (what == PERF_COUNT_SW_CPU_CLOCK || what == PERF_COUNT_SW_TASK_CLOCK);
}

bool counts_time(const perf_event_attr& attr) {
  const uint32_t what = what_is_counted(attr);
  const bool is_cycles = what == PERF_COUNT_HW_CPU_CYCLES || what == PERF_COUNT_HW_REF_CPU_CYCLES;
  return counts_nanoseconds(attr) || (attr.type == PERF_TYPE_HARDWARE && is_cycles);
}

bool counts_no_time(const perf_event_attr& attr) {
  const bool is_raw = attr.type == PERF_TYPE_RAW || attr.type >= PERF_TYPE_MAX;
  return !is_raw && !counts_time(attr);
}

void PerfEventTable::add(const PerfEvent& event) {
  const size_t index = size_++;
  if (has_stacks(event)) with_stacks_.push_back({index, event.attr});
  if ((event.attr.sample_type & PERF_SAMPLE_CALLCHAIN) != 0) have_chains_ = true;
  if (!problem_.empty()) return;
  const auto layout = layout_for(event);
  if (!layout) {
    problem_ = problem_of(event, layout.error());
    return;
  }
  for (const uint64_t id : event.ids) event_by_id_.emplace(id, index);
  layouts_.push_back(*layout);
  if (!are_ids_in_one_place(layouts_.front(), *layout)) have_one_place_for_ids_ = false;
}

Result<void> PerfEventTable::check() const {
  if (with_stacks_.empty()) return fail_without_stacks(have_chains_);
  if (!problem_.empty()) return fail(ErrorCode::Unsupported, problem_);
  if (!are_told_apart()) {
    return fail(ErrorCode::Unsupported,
                "its records do not tell their events apart. Record one event: perf record -e "
                "cpu-clock --call-graph dwarf");
  }
  return {};
}

void PerfEventTable::choose(const std::vector<uint64_t>& samples) {
  const auto worth = [&samples](const Candidate& event) {
    const bool has_samples = event.index < samples.size() && samples[event.index] > 0;
    return std::pair(has_samples, counts_time(event.attr));
  };
  // The first of those that are worth most.
  const auto best = std::max_element(
      with_stacks_.begin(), with_stacks_.end(),
      [&worth](const Candidate& a, const Candidate& b) { return worth(a) < worth(b); });
  if (best == with_stacks_.end()) return;
  sampled_event_ = best->index;
  is_sampled_.assign(size_, false);
  is_sampled_[best->index] = true;
  std::set<uint32_t> cores = {cores_of(best->attr)};
  for (const Candidate& event : with_stacks_) {
    // A further event on the same cores would draw their time twice.
    if (count_the_same(event.attr, best->attr) && cores.insert(cores_of(event.attr)).second) {
      is_sampled_[event.index] = true;
    }
  }
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
