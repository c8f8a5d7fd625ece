// The fields of each entry of a raw log, listed once for writing and reading.
#pragma once

#include "base/fields.h"
#include "recorder/raw_log.h"
#include "target/mapping_fields.h"

#include <string>
#include <utility>
#include <vector>

namespace sentry_prof::recorder {

template <typename Fields>
void describe(Fields& f, sampling::SamplerSetup& s) {
  f(s.event_name), f(s.fell_back_to_cpu_clock), f(s.kernel_excluded), f(s.has_switches);
  f(s.copies_outer_stacks), f(s.no_outer_stacks);
  f(s.counts_lost_samples), f(s.stack_bytes), f(s.ring_bytes_per_cpu), f(s.cpus),
      f(s.threads_attached);
  f(s.sample_type), f(s.register_mask);
}

template <typename Fields>
void describe(Fields& f, sampling::SamplerStats& s) {
  f(s.records), f(s.lost_samples), f(s.lost_records), f(s.cpus_not_sampled), f(s.wakeups);
}

template <typename Fields>
void describe(Fields& f, RawEnd& e) {
  f(e.time_ns), describe(f, e.stats);
}

template <typename Fields>
void describe(Fields& f, Session& s) {
  f(s.platform), f(s.release), f(s.environment), f(s.transaction_name), f(s.sdk_name);
  f(s.sdk_version), f(s.os_name), f(s.os_version), f(s.os_build), f(s.device_architecture);
  f(s.device_manufacturer), f(s.device_model);
}

template <typename Fields>
void describe(Fields& f, profile::ClockAnchor& c) {
  f(c.monotonic_ns), f(c.unix_ns);
}

template <typename Fields>
void describe(Fields& f, RawSession& s) {
  f(s.arch), f(s.has_trailer), describe(f, s.setup), f(s.frequency_hz), f(s.chunk_ns);
  f(s.max_chunk_json_bytes), f(s.begin_ns), describe(f, s.clock);
  f(s.main_pid), f(s.main_executable), describe(f, s.texts);
}

template <typename Fields>
void describe(Fields& f, std::pair<uint32_t, std::string>& thread) {
  f(thread.first), f(thread.second);
}

// No item is smaller than a thread of eight bytes.
template <typename Fields, typename Item>
void describe(Fields& f, std::vector<Item>& items) {
  if constexpr (Fields::kReads) {
    const uint32_t count = f.count(8);
    for (uint32_t i = 0; i < count && f.ok(); ++i) describe(f, items.emplace_back());
  } else {
    f.count(items.size());
    for (Item& item : items) describe(f, item);
  }
}

template <typename Fields>
void describe(Fields& f, target::ProcessSnapshot& s) {
  f(s.pid), f(s.name), describe(f, s.threads), describe(f, s.mappings);
  describe(f, s.data_below_code), f(s.taken_at_ns);
}

template <typename Fields>
void describe(Fields& f, RawAnswer& a) {
  f(a.is_yes), f(a.file_number), f(a.file_bytes), describe(f, a.error);
}

}  // namespace sentry_prof::recorder
