// One record of any bytes: decoding it must stay inside them and agree with itself about the time.
#include "fuzz/require.h"
#include "sampling/record_decoder.h"

#include <linux/perf_event.h>

using namespace sentry_prof;
using fuzz::require;
using namespace sentry_prof::sampling;

namespace {

constexpr uint64_t kSampleType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                 PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

bool is_inside(Bytes part, Bytes whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// Everything that points into the record, and every byte of it is readable.
void check(const DecodedRecord& decoded, Bytes record) {
  uint8_t sum = 0;
  const auto check_part = [&](Bytes part) {
    require(is_inside(part, record));
    for (std::byte byte : part) sum = static_cast<uint8_t>(sum + std::to_integer<uint8_t>(byte));
  };
  if (const auto* sample = std::get_if<SampleEvent>(&decoded.event.body)) {
    check_part(sample->stack);
    check_part(sample->frame_pointer_chain);
    check_part(sample->registers.words);
  } else if (const auto* map = std::get_if<MapEvent>(&decoded.event.body)) {
    require(map->build_id_size_bytes <= map->build_id.size());
    check_part(bytes_of(map->path));
  } else if (const auto* comm = std::get_if<CommEvent>(&decoded.event.body)) {
    check_part(bytes_of(comm->name));
  }
  volatile uint8_t keep = sum;
  (void)keep;
}

void check_with(uint64_t sample_type, bool has_trailer, Bytes record) {
  const auto layout = RecordLayout::create(sample_type, 0xff01ff, has_trailer);
  const DecodedRecord decoded = decode_record(*layout, record);
  check(decoded, record);
  const RecordHeader header = read_record_header(record);
  const uint16_t offset = record_time_offset(*layout, header);
  if (header.size_bytes < RecordHeader::kSize_bytes || header.size_bytes > record.size()) return;
  if (offset == RecordLayout::kAbsent) return;
  require(offset + 8u <= header.size_bytes);
  uint64_t time_ns;
  std::memcpy(&time_ns, record.data() + offset, sizeof time_ns);
  require(decoded.event.time_ns == time_ns);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes record = std::as_bytes(std::span(data, size));
  for (const bool has_trailer : {true, false}) {
    check_with(kSampleType, has_trailer, record);
    check_with(kSampleType | PERF_SAMPLE_CALLCHAIN, has_trailer, record);
  }
  return 0;
}
