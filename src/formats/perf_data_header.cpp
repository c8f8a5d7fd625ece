#include "formats/perf_data_header.h"

#include "base/checked.h"
#include "base/utf8.h"
#include "sampling/record_decoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace sentry_prof::formats {

namespace {

// perf.data-file-format.txt: magic, size, attr_size, three sections, 256 bits of features.
constexpr uint64_t kHeader_bytes = 104;
constexpr uint64_t kPipeHeader_bytes = 16;
constexpr size_t kSection_bytes = 16;
constexpr size_t kFeatureWords = 4;
// The first published size of perf_event_attr; 0 means it as well.
constexpr uint32_t kFirstAttr_bytes = PERF_ATTR_SIZE_VER0;
// Far above the size of perf_event_attr, whose size is a page at most (perf_copy_attr()).
constexpr uint64_t kMaxAttr_bytes = 4096;

enum Feature : uint64_t {
  kBuildIds = 2,
  kHostName = 3,
  kOsRelease = 4,
  kArch = 6,
  kEventDescriptions = 12,
  kDirectoryFormat = 24,
  kClockData = 29,
};

struct Section {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

Section read_section(ByteReader& in) {
  Section section;
  section.offset = in.u64();
  section.size_bytes = in.u64();
  return section;
}

Result<std::vector<std::byte>> read_part(const ByteSource& file, Section part,
                                         uint64_t limit_bytes) {
  if (!range_fits(part.offset, part.size_bytes, file.size_bytes())) {
    return fail(ErrorCode::Malformed, "a section of the perf.data header lies outside the file");
  }
  if (part.size_bytes > limit_bytes) {
    return fail(ErrorCode::LimitExceeded, "a section of the perf.data header is too large");
  }
  std::vector<std::byte> bytes(static_cast<size_t>(part.size_bytes));
  if (!file.read_at(part.offset, bytes)) return fail(ErrorCode::Io, "the file cannot be read");
  return bytes;
}

ByteReader native(Bytes bytes) { return ByteReader(bytes, std::endian::native); }

std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// perf_header_string: a length, and text that ends in NULs within it. Of terminals and profiles.
std::string read_string(ByteReader& in) {
  const std::string_view text = as_text(in.bytes(in.u32()));
  return shortened_utf8(printable_utf8(text.substr(0, text.find('\0'))), kMaxPerfText_bytes);
}

perf_event_attr to_attr(Bytes bytes) {
  perf_event_attr attr{};
  std::memcpy(&attr, bytes.data(), std::min(bytes.size(), sizeof attr));
  return attr;
}

void add_event(Bytes attr, Bytes ids, PerfDataHeader& header) {
  const size_t id_count = ids.size() / sizeof(uint64_t);
  const bool has_room =
      header.events.size() < kMaxPerfEvents && id_count <= kMaxPerfEventIds - header.event_id_count;
  if (!has_room) {
    header.exceeds_limits = true;
    return;
  }
  PerfEvent event;
  event.attr = to_attr(attr);
  event.name = fmt::format("{}:{:#x}", event.attr.type, event.attr.config);
  event.ids.resize(id_count);
  if (!event.ids.empty()) {
    std::memcpy(event.ids.data(), ids.data(), event.ids.size() * sizeof(uint64_t));
  }
  header.events.push_back(std::move(event));
  header.event_id_count += id_count;
}

// Each entry is an attr, of the size that the header says, and the section of its ids.
Result<void> read_events(const ByteSource& file, Section attrs, uint64_t entry_bytes,
                         PerfDataHeader& header) {
  if (entry_bytes < kFirstAttr_bytes + kSection_bytes || entry_bytes > kMaxAttr_bytes) {
    return fail(ErrorCode::Malformed, "the perf.data header states an impossible size of events");
  }
  if (attrs.size_bytes / entry_bytes > kMaxPerfEvents) {
    return fail(ErrorCode::LimitExceeded,
                fmt::format("the perf.data file has more than {} events", kMaxPerfEvents));
  }
  const auto bytes = read_part(file, attrs, kMaxPerfEvents * kMaxAttr_bytes);
  if (!bytes) return tl::unexpected(bytes.error());
  ByteReader in = native(*bytes);
  uint64_t id_bytes_left = kMaxPerfEventIds * sizeof(uint64_t);
  while (in.remaining() >= entry_bytes) {
    const Bytes attr = in.bytes(entry_bytes - kSection_bytes);
    const auto ids = read_part(file, read_section(in), id_bytes_left);
    if (!ids) return tl::unexpected(ids.error());
    id_bytes_left -= ids->size();
    add_event(attr, *ids, header);
  }
  return {};
}

void add_build_ids(Bytes bytes, PerfDataHeader& header) {
  while (true) {
    const size_t size_bytes = sampling::read_record_header(bytes).size_bytes;
    if (size_bytes < sampling::RecordHeader::kSize_bytes || size_bytes > bytes.size()) return;
    add_perf_build_id(bytes.first(size_bytes), header);
    bytes = bytes.subspan(size_bytes);
  }
}

// The descriptions are in the order of the events.
void name_events(Bytes bytes, PerfDataHeader& header) {
  ByteReader in = native(bytes);
  const uint32_t count = in.u32();
  const uint32_t attr_bytes = in.u32();
  for (size_t i = 0; i < std::min<size_t>(count, header.events.size()); ++i) {
    in.skip(attr_bytes);
    const uint64_t ids = in.u32();
    std::string name = read_string(in);
    in.skip(ids * sizeof(uint64_t));
    if (!in.ok()) return;
    if (!name.empty()) header.events[i].name = std::move(name);
  }
}

void read_clock(Bytes bytes, PerfDataHeader& header) {
  ByteReader in = native(bytes);
  const uint32_t version = in.u32();
  in.skip(4);  // clockid
  PerfClock clock;
  clock.unix_ns = in.u64();
  clock.record_ns = in.u64();
  if (in.ok() && version == 1) header.clock = clock;
}

void add_feature(uint64_t feature, Bytes bytes, PerfDataHeader& header) {
  ByteReader in = native(bytes);
  if (feature == kBuildIds) add_build_ids(bytes, header);
  if (feature == kHostName) header.host_name = read_string(in);
  if (feature == kOsRelease) header.os_release = read_string(in);
  if (feature == kArch) header.arch = read_string(in);
  if (feature == kEventDescriptions) name_events(bytes, header);
  if (feature == kClockData) read_clock(bytes, header);
}

bool is_wanted(uint64_t feature) {
  return feature == kBuildIds || feature == kHostName || feature == kOsRelease ||
         feature == kArch || feature == kEventDescriptions || feature == kClockData;
}

using FeatureBits = std::array<uint64_t, kFeatureWords>;

bool has_feature(const FeatureBits& bits, uint64_t feature) {
  return ((bits[feature / 64] >> (feature % 64)) & 1) != 0;
}

// Behind the records stands a section for each bit that is set, in the order of the bits.
void read_features(const ByteSource& file, const FeatureBits& bits, PerfDataHeader& header) {
  uint64_t offset = header.data_offset + header.data_bytes;
  for (uint64_t feature = 0; feature < 64 * kFeatureWords; ++feature) {
    if (!has_feature(bits, feature)) continue;
    const auto place = read_part(file, {offset, kSection_bytes}, kSection_bytes);
    if (!place) {
      header.lacks_features = true;
      return;
    }
    offset += kSection_bytes;
    ByteReader in = native(*place);
    const Section part = read_section(in);
    if (!range_fits(part.offset, part.size_bytes, file.size_bytes())) header.lacks_features = true;
    if (!is_wanted(feature)) continue;
    const auto bytes = read_part(file, part, kMaxPerfFeature_bytes);
    if (bytes) {
      add_feature(feature, *bytes, header);
    } else if (bytes.error().code == ErrorCode::LimitExceeded) {
      header.exceeds_limits = true;
    }
  }
}

Result<PerfDataHeader> read_file_header(const ByteSource& file) {
  const auto bytes = read_part(file, {0, kHeader_bytes}, kHeader_bytes);
  if (!bytes) return fail(ErrorCode::Malformed, "the perf.data header is cut off");
  ByteReader in = native(*bytes);
  in.skip(kPerfDataMagic_bytes + 8);
  const uint64_t entry_bytes = in.u64();
  const Section attrs = read_section(in);
  const Section data = read_section(in);
  in.skip(kSection_bytes);  // event types, of old versions
  FeatureBits features{};
  for (uint64_t& word : features) word = in.u64();
  if (has_feature(features, kDirectoryFormat)) {
    return fail(ErrorCode::Unsupported,
                "is part of a directory of 'perf record --threads', which cannot be converted: its "
                "records are in other files");
  }

  PerfDataHeader header;
  if (auto ok = read_events(file, attrs, entry_bytes, header); !ok) {
    return tl::unexpected(ok.error());
  }
  if (data.offset > file.size_bytes()) {
    return fail(ErrorCode::Malformed, "the records of the perf.data file lie outside of it");
  }
  const uint64_t rest_bytes = file.size_bytes() - data.offset;
  // The size is written at the very end.
  header.is_cut_off = data.size_bytes == 0 || data.size_bytes > rest_bytes;
  header.data_offset = data.offset;
  header.data_bytes = header.is_cut_off ? rest_bytes : data.size_bytes;
  if (!header.is_cut_off) read_features(file, features, header);
  return header;
}

}  // namespace

bool is_perf_data(std::string_view head) {
  const std::string_view magic = head.substr(0, kPerfDataMagic_bytes);
  return magic == kPerfDataMagic || magic == "2ELIFREP" || magic == "PERFFILE";
}

Result<PerfDataHeader> read_perf_header(const ByteSource& file) {
  const auto head = read_part(file, {0, kPipeHeader_bytes}, kPipeHeader_bytes);
  if (!head) return fail(ErrorCode::Malformed, "the perf.data header is cut off");
  const std::string_view magic = as_text(*head).substr(0, kPerfDataMagic_bytes);
  if (!is_perf_data(magic)) return fail(ErrorCode::Malformed, "not a perf.data file");
  if (magic != kPerfDataMagic) {
    return fail(ErrorCode::Unsupported,
                "a perf.data file of the first version, or of a machine of the other byte order, "
                "which sentry-prof does not read");
  }
  ByteReader in = native(*head);
  in.skip(kPerfDataMagic_bytes);
  const uint64_t header_bytes = in.u64();
  if (header_bytes == kHeader_bytes) return read_file_header(file);
  if (header_bytes != kPipeHeader_bytes) {
    return fail(ErrorCode::Unsupported,
                fmt::format("a perf.data header of {} bytes, not {} or {} (of a pipe)",
                            header_bytes, kHeader_bytes, kPipeHeader_bytes));
  }
  PerfDataHeader header;
  header.data_offset = kPipeHeader_bytes;
  header.data_bytes = file.size_bytes() - kPipeHeader_bytes;
  return header;
}

void add_perf_attr(Bytes payload, PerfDataHeader& header) {
  ByteReader in = native(payload);
  in.skip(4);  // type
  uint32_t attr_bytes = in.u32();
  if (attr_bytes == 0) attr_bytes = kFirstAttr_bytes;
  if (!in.ok() || attr_bytes < kFirstAttr_bytes || attr_bytes > payload.size()) return;
  add_event(payload.first(attr_bytes), payload.subspan(attr_bytes), header);
}

void add_perf_feature(Bytes payload, PerfDataHeader& header) {
  ByteReader in = native(payload);
  const uint64_t feature = in.u64();
  if (in.ok()) add_feature(feature, in.bytes(in.remaining()), header);
}

// Before the number was told, ids of 16 bytes (md5, uuid) and 8 (--build-id=fast of ld.lld) had
// zeros behind them.
size_t size_without_padding(Bytes id) {
  for (const size_t size : {size_t{8}, size_t{16}}) {
    const auto rest = id.subspan(std::min(size, id.size()));
    if (std::ranges::all_of(rest, [](std::byte byte) { return byte == std::byte{0}; })) return size;
  }
  return id.size();
}

// struct build_id_event: a record header, a pid, 20 bytes of id and their number (if the header
// says so), the path.
void add_perf_build_id(Bytes record, PerfDataHeader& header) {
  constexpr uint16_t kHasSize = 1u << 15;  // PERF_RECORD_MISC_BUILD_ID_SIZE, Linux 5.9
  constexpr size_t kBuildId_bytes = 20;
  const sampling::RecordHeader head = sampling::read_record_header(record);
  const uint16_t mode = head.misc & PERF_RECORD_MISC_CPUMODE_MASK;
  ByteReader in = native(record);
  in.skip(sampling::RecordHeader::kSize_bytes + 4);
  const Bytes id = in.bytes(kBuildId_bytes);
  const uint8_t size_bytes = in.u8();
  in.skip(3);
  const std::string_view rest = as_text(in.bytes(in.remaining()));
  const size_t id_bytes = (head.misc & kHasSize) != 0 ? size_bytes : size_without_padding(id);
  if (!in.ok() || mode != PERF_RECORD_MISC_USER || id_bytes == 0 || id_bytes > id.size()) return;
  const std::string_view path = rest.substr(0, rest.find('\0'));
  const bool has_room = path.size() <= sampling::kLongestPath_bytes &&
                        header.build_ids.size() < kMaxPerfBuildIds &&
                        header.build_id_paths_bytes + path.size() <= kMaxPerfBuildIdPaths_bytes;
  if (!has_room) {
    header.exceeds_limits = true;
    return;
  }
  header.build_id_paths_bytes += path.size();
  header.build_ids.push_back(
      {std::string(path), {id.begin(), id.begin() + static_cast<ptrdiff_t>(id_bytes)}});
}

}  // namespace sentry_prof::formats
