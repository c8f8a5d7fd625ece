// From the bytes of one kernel record to an Event. Pure: no kernel, no clock, no copy.
// Sources: perf_event_open(2), include/uapi/linux/perf_event.h (enum perf_event_type).
#pragma once

#include "sampling/event.h"
#include "sentry_prof/result.h"

#include <cstdint>

namespace sentry_prof::sampling {

// The first eight bytes of every record: perf_event_header.
struct RecordHeader {
  static constexpr size_t kSize_bytes = 8;
  uint32_t type = 0;
  uint16_t misc = 0;
  uint16_t size_bytes = 0;  // of the whole record, this header included
};

// `bytes` must hold at least RecordHeader::kSize_bytes; shorter spans give a header of size 0.
RecordHeader read_record_header(Bytes bytes);

// Of a mapping's path; longer ones are none of the kernel's (d_path() gives PATH_MAX at most).
inline constexpr size_t kLongestPath_bytes = 4096;

// What of perf_event_attr says how an event's records are laid out.
struct RecordFields {
  uint64_t sample_type = 0;
  uint64_t register_mask = 0;       // sample_regs_user
  bool has_trailer = true;          // sample_id_all
  uint64_t read_format = 0;         // with PERF_SAMPLE_READ
  uint64_t branch_sample_type = 0;  // with PERF_SAMPLE_BRANCH_STACK
  bool asks_build_ids = true;       // attr.build_id, Linux 5.12: MMAP2 may have them
};

// Where the fields stand in records of events with these attributes, computed once.
class RecordLayout {
 public:
  // sample_type: PERF_SAMPLE_* bits. Unsupported if it has a field whose form other attributes say
  // (READ, BRANCH_STACK), or lacks TID or TIME.
  // register_mask: sample_regs_user, if REGS_USER is among the bits.
  // has_trailer: attr.sample_id_all, each record that is no sample ends with its thread and time.
  static Result<RecordLayout> create(uint64_t sample_type, uint64_t register_mask,
                                     bool has_trailer);
  // The same of any event. Unsupported if TID or TIME is missing.
  static Result<RecordLayout> create(const RecordFields& fields);

  static constexpr uint16_t kAbsent = 0xffff;

  // Offsets in a sample, from the start of the record; kAbsent if not among the bits. The
  // identifier is that of PERF_SAMPLE_IDENTIFIER, else that of PERF_SAMPLE_ID.
  uint16_t sample_identifier_offset() const { return sample_identifier_; }
  uint16_t sample_tid_offset() const { return sample_tid_; }
  uint16_t sample_time_offset() const { return sample_time_; }
  uint16_t sample_cpu_offset() const { return sample_cpu_; }
  // The header and all fields of fixed size of a sample.
  uint16_t sample_fixed_bytes() const { return sample_fixed_bytes_; }
  bool has_registers() const { return has_registers_; }
  bool has_stack() const { return has_stack_; }
  // The bits of sample_type whose fields stand between those of fixed size and the registers.
  uint64_t varying_fields() const { return varying_fields_; }
  uint64_t read_format() const { return read_format_; }
  uint64_t branch_sample_type() const { return branch_sample_type_; }
  uint32_t register_bytes() const { return register_bytes_; }
  bool asks_build_ids() const { return asks_build_ids_; }

  // Offsets in the trailer, from its start; the trailer is the end of the record.
  uint16_t trailer_bytes() const { return trailer_bytes_; }
  uint16_t trailer_tid_offset() const { return trailer_tid_; }
  uint16_t trailer_time_offset() const { return trailer_time_; }
  uint16_t trailer_identifier_offset() const { return trailer_identifier_; }

 private:
  RecordLayout() = default;
  void place_sample_fields(uint64_t sample_type);
  void place_trailer_fields(uint64_t sample_type);

  uint16_t sample_identifier_ = kAbsent, sample_tid_ = kAbsent, sample_time_ = kAbsent,
           sample_cpu_ = kAbsent, sample_fixed_bytes_ = 0;
  uint16_t trailer_tid_ = kAbsent, trailer_time_ = kAbsent, trailer_identifier_ = kAbsent,
           trailer_bytes_ = 0;
  uint32_t register_bytes_ = 0;
  bool has_registers_ = false, has_stack_ = false, asks_build_ids_ = true;
  uint64_t varying_fields_ = 0, read_format_ = 0, branch_sample_type_ = 0;
};

struct DecodedRecord {
  // False for a type that is not among the events of event.h: to be skipped by its size.
  bool is_known_type = true;
  // PERF_SAMPLE_IDENTIFIER, else PERF_SAMPLE_ID: which event wrote it; 0 if the layout has none.
  uint64_t identifier = 0;
  // Points into the record. Undecodable if the record is too short for what it says.
  Event event;
};

// Of the kernel's types (PERF_RECORD_*) those that decode_record() makes events of.
bool is_event_type(uint32_t type);

// `record` is the whole record, header included, as its header's size says.
DecodedRecord decode_record(const RecordLayout& layout, Bytes record);

// The time of the record with this header without decoding it, and where it stands: an offset from
// the start of the record, kAbsent if the record has none or is too short for it.
uint16_t record_time_offset(const RecordLayout& layout, const RecordHeader& header);

}  // namespace sentry_prof::sampling
