#include "sampling/record_decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <linux/perf_event.h>

namespace sentry_prof::sampling {
namespace {

// Records are in the byte order of the machine that wrote them: this one.
template <typename T>
T load(Bytes bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// Fields of eight bytes at the start of a sample, in the order in which the kernel writes them.
constexpr uint64_t kFixedSampleFields[] = {
    PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,   PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME,       PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
    PERF_SAMPLE_STREAM_ID,  PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD};
// The same for the trailer of the other records (perf_event.h, above perf_event_type).
constexpr uint64_t kTrailerFields[] = {PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
                                       PERF_SAMPLE_ID,  PERF_SAMPLE_STREAM_ID,
                                       PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER};
// Of varying size, in front of the registers.
constexpr uint64_t kVaryingFields =
    PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK;

// The payload between header and trailer, and what the trailer says.
struct SideBand {
  ByteReader payload;
  RecordHeader header;
  uint32_t pid = 0, tid = 0;
  bool asks_build_ids = true;  // RecordFields
};

// Longer ones are none of the kernel's. A thread has 16 bytes (TASK_COMM_LEN), but perf reads the
// names of kernel workers from /proc, where they have up to 64.
constexpr size_t kLongestName_bytes = 64;

std::string_view bounded_string(ByteReader& reader, size_t longest_bytes) {
  Bytes rest = reader.bytes(reader.remaining());
  const char* begin = reinterpret_cast<const char*>(rest.data());
  const char* end = std::find(begin, begin + rest.size(), '\0');
  const auto size = static_cast<size_t>(end - begin);
  if (size <= longest_bytes) return {begin, size};
  reader.set_failed();
  return {};
}

bool has_flag(const SideBand& record, uint16_t flag) { return (record.header.misc & flag) != 0; }

MapEvent read_mapping(ByteReader& in) {
  MapEvent map;
  map.pid = in.u32();
  map.tid = in.u32();
  map.begin = {in.u64()};
  map.size_bytes = in.u64();
  map.file_offset = in.u64();
  return map;
}

MapEvent decode_mmap(SideBand& record) {
  MapEvent map = read_mapping(record.payload);
  map.is_data = has_flag(record, PERF_RECORD_MISC_MMAP_DATA);
  map.path = bounded_string(record.payload, kLongestPath_bytes);
  return map;
}

void read_build_id(ByteReader& in, MapEvent& map) {
  const uint8_t size_bytes = in.u8();
  in.skip(3);
  Bytes id = in.bytes(map.build_id.size());
  if (!in.ok() || size_bytes > id.size()) return in.set_failed();
  std::copy(id.begin(), id.begin() + size_bytes, map.build_id.begin());
  map.build_id_size_bytes = size_bytes;
}

// Up to Linux 6.18 at least the flag stays set where one mapping is told to several events, of
// which an earlier one asks for build ids: where this one does not ask, device and inode stand
// there. `perf inject` puts build ids into such records too; of 16 or 20 bytes they are told apart,
// as those are no majors of disks.
bool has_build_id(const SideBand& record) {
  if (!has_flag(record, PERF_RECORD_MISC_MMAP_BUILD_ID)) return false;
  if (record.asks_build_ids) return true;
  ByteReader in = record.payload;
  const uint32_t size_bytes = in.u32();
  return size_bytes == 16 || size_bytes == 20;
}

void read_device_and_inode(ByteReader& in, MapEvent& map) {
  map.device_major = in.u32();
  map.device_minor = in.u32();
  map.inode = in.u64();
  in.skip(8);  // generation of the inode
}

MapEvent decode_mmap2(SideBand& record) {
  ByteReader& in = record.payload;
  MapEvent map = read_mapping(in);
  map.is_data = has_flag(record, PERF_RECORD_MISC_MMAP_DATA);
  if (has_build_id(record)) {
    read_build_id(in, map);
  } else {
    read_device_and_inode(in, map);
  }
  in.skip(8);  // PROT_* and MAP_* flags
  map.path = bounded_string(in, kLongestPath_bytes);
  return map;
}

CommEvent decode_comm(SideBand& record) {
  CommEvent comm;
  comm.pid = record.payload.u32();
  comm.tid = record.payload.u32();
  comm.is_exec = has_flag(record, PERF_RECORD_MISC_COMM_EXEC);
  comm.name = bounded_string(record.payload, kLongestName_bytes);
  return comm;
}

// Also the layout of PERF_RECORD_EXIT.
ForkEvent decode_fork(SideBand& record) {
  ForkEvent fork;
  fork.pid = record.payload.u32();
  fork.parent_pid = record.payload.u32();
  fork.tid = record.payload.u32();
  fork.parent_tid = record.payload.u32();
  fork.is_synthesized = has_flag(record, PERF_RECORD_MISC_FORK_EXEC);
  record.payload.skip(8);  // time, also in the trailer
  return fork;
}

ExitEvent decode_exit(SideBand& record) {
  const ForkEvent fork = decode_fork(record);
  return {fork.pid, fork.tid};
}

SwitchEvent decode_switch(const SideBand& record) {
  SwitchEvent event;
  event.pid = record.pid;
  event.tid = record.tid;
  event.is_out = has_flag(record, PERF_RECORD_MISC_SWITCH_OUT);
  return event;
}

LostEvent decode_lost(SideBand& record) {
  record.payload.skip(8);  // id of the event
  return {record.payload.u64()};
}

LostEvent decode_lost_samples(SideBand& record) { return {record.payload.u64()}; }

ThrottleEvent decode_throttle(SideBand& record) {
  record.payload.skip(24);  // time, id, stream id
  return {record.header.type == PERF_RECORD_THROTTLE};
}

// False for a type that event.h does not know.
bool decode_side_band_body(SideBand& record, Event& event) {
  switch (record.header.type) {
    case PERF_RECORD_MMAP:
      event.body = decode_mmap(record);
      return true;
    case PERF_RECORD_MMAP2:
      event.body = decode_mmap2(record);
      return true;
    case PERF_RECORD_COMM:
      event.body = decode_comm(record);
      return true;
    case PERF_RECORD_FORK:
      event.body = decode_fork(record);
      return true;
    case PERF_RECORD_EXIT:
      event.body = decode_exit(record);
      return true;
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:  // the thread is that of the trailer as well
      event.body = decode_switch(record);
      return true;
    case PERF_RECORD_LOST:
      event.body = decode_lost(record);
      return true;
    case PERF_RECORD_LOST_SAMPLES:
      event.body = decode_lost_samples(record);
      return true;
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
      event.body = decode_throttle(record);
      return true;
    default:
      return false;
  }
}

void mark_undecodable(DecodedRecord& decoded, uint32_t type) {
  decoded.event.body = UndecodableEvent{type};
}

void decode_side_band(const RecordLayout& layout, const RecordHeader& header, Bytes record,
                      DecodedRecord& decoded) {
  const size_t trailer_bytes = layout.trailer_bytes();
  if (record.size() < RecordHeader::kSize_bytes + trailer_bytes) {
    return mark_undecodable(decoded, header.type);
  }
  const size_t trailer_begin = record.size() - trailer_bytes;
  Bytes payload =
      record.subspan(RecordHeader::kSize_bytes, trailer_begin - RecordHeader::kSize_bytes);
  SideBand side_band{ByteReader(payload, std::endian::native), header};
  side_band.asks_build_ids = layout.asks_build_ids();
  if (trailer_bytes != 0) {
    side_band.pid = load<uint32_t>(record, trailer_begin + layout.trailer_tid_offset());
    side_band.tid = load<uint32_t>(record, trailer_begin + layout.trailer_tid_offset() + 4);
    decoded.event.time_ns = load<uint64_t>(record, trailer_begin + layout.trailer_time_offset());
  }
  if (trailer_bytes != 0 && layout.trailer_identifier_offset() != RecordLayout::kAbsent) {
    decoded.identifier = load<uint64_t>(record, trailer_begin + layout.trailer_identifier_offset());
  }
  decoded.is_known_type = decode_side_band_body(side_band, decoded.event);
  if (!side_band.payload.ok()) mark_undecodable(decoded, header.type);
}

UserRegisters read_registers(const RecordLayout& layout, ByteReader& in) {
  UserRegisters registers;
  const uint64_t abi = in.u64();
  if (abi == PERF_SAMPLE_REGS_ABI_NONE) return registers;
  if (abi > PERF_SAMPLE_REGS_ABI_64) in.set_failed();
  registers.is_present = true;
  registers.is_32_bit = abi == PERF_SAMPLE_REGS_ABI_32;
  registers.words = in.bytes(layout.register_bytes());
  return registers;
}

// The kernel reserves `size` bytes, fills some, and says behind them how many (dyn_size): what
// follows those is left over from an earlier lap of the ring.
void read_stack(ByteReader& in, SampleEvent& sample) {
  const uint64_t size = in.u64();
  if (size == 0) return;
  Bytes reserved = in.bytes(size);
  const uint64_t filled = in.u64();
  if (!in.ok() || filled > size) {
    in.set_failed();
    return;
  }
  sample.stack = reserved.first(static_cast<size_t>(filled));
  sample.stack_is_cut = filled == size;
}

// perf_event_open(2), PERF_SAMPLE_READ.
void skip_read_values(uint64_t read_format, ByteReader& in) {
  constexpr uint64_t kFormatLost = 1u << 4;  // PERF_FORMAT_LOST, not in headers before Linux 6.0
  const uint64_t times = std::popcount(
      read_format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING));
  const uint64_t words_a_value = 1 + std::popcount(read_format & (PERF_FORMAT_ID | kFormatLost));
  if ((read_format & PERF_FORMAT_GROUP) == 0) return in.skip(8 * (times + words_a_value));
  const uint64_t values = in.u64();
  if (values > in.remaining()) return in.set_failed();
  in.skip(8 * (times + values * words_a_value));
}

void skip_branch_stack(uint64_t branch_sample_type, ByteReader& in) {
  constexpr uint64_t kCounters = 1u << 19;  // PERF_SAMPLE_BRANCH_COUNTERS, Linux 6.8
  const uint64_t branches = in.u64();
  if (branches > in.remaining()) return in.set_failed();
  if ((branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX) != 0) in.skip(8);
  in.skip(branches * 24);
  if ((branch_sample_type & kCounters) != 0) in.skip(branches * 8);
}

// Which field tells the event.
uint64_t id_field_of(uint64_t sample_type) {
  return (sample_type & PERF_SAMPLE_IDENTIFIER) != 0 ? PERF_SAMPLE_IDENTIFIER : PERF_SAMPLE_ID;
}

// The part behind PERF_CONTEXT_USER; before it is the kernel's, if that was asked for.
Bytes read_user_chain(ByteReader& in) {
  const uint64_t count = in.u64();
  if (count > in.remaining() / 8) in.set_failed();
  Bytes words = in.bytes(8 * count);
  while (!words.empty()) {
    const auto word = load<uint64_t>(words, 0);
    words = words.subspan(8);
    if (word == static_cast<uint64_t>(PERF_CONTEXT_USER)) return words;
  }
  return {};
}

// In the order in which the kernel writes them.
void read_varying_fields(const RecordLayout& layout, ByteReader& in, SampleEvent& sample) {
  const uint64_t fields = layout.varying_fields();
  if ((fields & PERF_SAMPLE_READ) != 0) skip_read_values(layout.read_format(), in);
  if ((fields & PERF_SAMPLE_CALLCHAIN) != 0) sample.frame_pointer_chain = read_user_chain(in);
  if ((fields & PERF_SAMPLE_RAW) != 0) in.skip(in.u32());
  if ((fields & PERF_SAMPLE_BRANCH_STACK) != 0) skip_branch_stack(layout.branch_sample_type(), in);
}

// Read from the front only: kernels since about 6.7 may leave padding at the end of a sample.
void decode_sample(const RecordLayout& layout, const RecordHeader& header, Bytes record,
                   DecodedRecord& decoded) {
  if (record.size() < layout.sample_fixed_bytes()) return mark_undecodable(decoded, header.type);
  SampleEvent sample;
  sample.pid = load<uint32_t>(record, layout.sample_tid_offset());
  sample.tid = load<uint32_t>(record, layout.sample_tid_offset() + 4u);
  if (layout.sample_cpu_offset() != RecordLayout::kAbsent) {
    sample.cpu = load<uint32_t>(record, layout.sample_cpu_offset());
  }
  decoded.event.time_ns = load<uint64_t>(record, layout.sample_time_offset());
  if (layout.sample_identifier_offset() != RecordLayout::kAbsent) {
    decoded.identifier = load<uint64_t>(record, layout.sample_identifier_offset());
  }
  ByteReader rest(record.subspan(layout.sample_fixed_bytes()), std::endian::native);
  if (layout.varying_fields() != 0) read_varying_fields(layout, rest, sample);
  if (layout.has_registers()) sample.registers = read_registers(layout, rest);
  if (layout.has_stack()) read_stack(rest, sample);
  if (!rest.ok()) return mark_undecodable(decoded, header.type);
  decoded.event.body = sample;
}

}  // namespace

bool is_event_type(uint32_t type) {
  switch (type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_LOST:
    case PERF_RECORD_COMM:
    case PERF_RECORD_EXIT:
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
    case PERF_RECORD_FORK:
    case PERF_RECORD_SAMPLE:
    case PERF_RECORD_MMAP2:
    case PERF_RECORD_LOST_SAMPLES:
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
      return true;
    default:
      return false;
  }
}

RecordHeader read_record_header(Bytes bytes) {
  if (bytes.size() < RecordHeader::kSize_bytes) return {};
  return {load<uint32_t>(bytes, 0), load<uint16_t>(bytes, 4), load<uint16_t>(bytes, 6)};
}

Result<RecordLayout> RecordLayout::create(uint64_t sample_type, uint64_t register_mask,
                                          bool has_trailer) {
  if ((sample_type & (PERF_SAMPLE_READ | PERF_SAMPLE_BRANCH_STACK)) != 0) {
    return fail(ErrorCode::Unsupported, "samples with READ or BRANCH_STACK fields");
  }
  return create({sample_type, register_mask, has_trailer});
}

Result<RecordLayout> RecordLayout::create(const RecordFields& fields) {
  constexpr uint64_t kNeeded = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  if ((fields.sample_type & kNeeded) != kNeeded) {
    return fail(ErrorCode::Unsupported, "samples without thread or time");
  }
  RecordLayout layout;
  layout.place_sample_fields(fields.sample_type);
  if (fields.has_trailer) layout.place_trailer_fields(fields.sample_type);
  layout.has_registers_ = (fields.sample_type & PERF_SAMPLE_REGS_USER) != 0;
  layout.has_stack_ = (fields.sample_type & PERF_SAMPLE_STACK_USER) != 0;
  layout.register_bytes_ = 8 * static_cast<uint32_t>(std::popcount(fields.register_mask));
  layout.asks_build_ids_ = fields.asks_build_ids;
  layout.varying_fields_ = fields.sample_type & kVaryingFields;
  layout.read_format_ = fields.read_format;
  layout.branch_sample_type_ = fields.branch_sample_type;
  return layout;
}

void RecordLayout::place_sample_fields(uint64_t sample_type) {
  const uint64_t id_field = id_field_of(sample_type);
  uint16_t offset = RecordHeader::kSize_bytes;
  for (uint64_t field : kFixedSampleFields) {
    if ((sample_type & field) == 0) continue;
    if (field == id_field) sample_identifier_ = offset;
    if (field == PERF_SAMPLE_TID) sample_tid_ = offset;
    if (field == PERF_SAMPLE_TIME) sample_time_ = offset;
    if (field == PERF_SAMPLE_CPU) sample_cpu_ = offset;
    offset = static_cast<uint16_t>(offset + 8);
  }
  sample_fixed_bytes_ = offset;
}

void RecordLayout::place_trailer_fields(uint64_t sample_type) {
  const uint64_t id_field = id_field_of(sample_type);
  uint16_t offset = 0;
  for (uint64_t field : kTrailerFields) {
    if ((sample_type & field) == 0) continue;
    if (field == PERF_SAMPLE_TID) trailer_tid_ = offset;
    if (field == PERF_SAMPLE_TIME) trailer_time_ = offset;
    if (field == id_field) trailer_identifier_ = offset;
    offset = static_cast<uint16_t>(offset + 8);
  }
  trailer_bytes_ = offset;
}

DecodedRecord decode_record(const RecordLayout& layout, Bytes record) {
  DecodedRecord decoded;
  const RecordHeader header = read_record_header(record);
  if (header.size_bytes < RecordHeader::kSize_bytes || header.size_bytes > record.size()) {
    mark_undecodable(decoded, header.type);
    return decoded;
  }
  Bytes whole = record.first(header.size_bytes);
  if (header.type == PERF_RECORD_SAMPLE) {
    decode_sample(layout, header, whole, decoded);
  } else {
    decode_side_band(layout, header, whole, decoded);
  }
  return decoded;
}

uint16_t record_time_offset(const RecordLayout& layout, const RecordHeader& header) {
  if (header.type == PERF_RECORD_SAMPLE) {
    const bool holds_time = header.size_bytes >= layout.sample_fixed_bytes();
    return holds_time ? layout.sample_time_offset() : RecordLayout::kAbsent;
  }
  const size_t needed_bytes = RecordHeader::kSize_bytes + layout.trailer_bytes();
  if (layout.trailer_bytes() == 0 || header.size_bytes < needed_bytes) return RecordLayout::kAbsent;
  return static_cast<uint16_t>(header.size_bytes - layout.trailer_bytes() +
                               layout.trailer_time_offset());
}

}  // namespace sentry_prof::sampling
