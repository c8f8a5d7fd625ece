// What stands around the records of a perf.data file.
#include "formats/perf_data_header.h"

#include "support/catch2.h"
#include "support/perf_data_builder.h"

using namespace sentry_prof;
using namespace sentry_prof::formats;
using namespace sentry_prof::test;

namespace {

PerfDataHeader header_of(const PerfDataBuilder& builder) {
  const auto header = read_perf_header(builder.file());
  REQUIRE(header);
  return *header;
}

ErrorCode error_of(std::vector<std::byte> bytes) {
  const auto header = read_perf_header(MemoryByteSource(std::move(bytes)));
  REQUIRE_FALSE(header);
  return header.error().code;
}

void put(std::vector<std::byte>& file, size_t offset, uint64_t value) {
  std::memcpy(file.data() + offset, &value, sizeof value);
}

// A build id's entry: 20 bytes of `value`.
std::vector<std::byte> build_id(uint16_t misc, uint8_t value, uint8_t size_bytes,
                                std::string_view path) {
  RecordBuilder record(0, misc);
  record.u32(UINT32_MAX);
  for (int i = 0; i < 20; ++i) record.u8(value);
  return record.u8(size_bytes).zeros(3).string(path).build();
}

std::vector<std::byte> text_of(std::string_view text) {
  std::vector<std::byte> bytes;
  append_number(bytes, static_cast<uint32_t>(text.size()));
  append(bytes, bytes_of(text));
  return bytes;
}

// Of one event, whose attr stands there with 64 bytes.
std::vector<std::byte> description_of(std::string_view name) {
  std::vector<std::byte> bytes;
  append_number<uint32_t>(bytes, 1);
  append_number<uint32_t>(bytes, 64);
  bytes.resize(bytes.size() + 64);
  append_number<uint32_t>(bytes, 1);
  append(bytes, text_of(name));
  append_number<uint64_t>(bytes, 5);
  return bytes;
}

constexpr uint16_t kUserWithSize = PERF_RECORD_MISC_USER | (1u << 15);

}  // namespace

TEST_CASE("events are read with their ids") {
  perf_event_attr second = stack_attr();
  second.type = PERF_TYPE_HARDWARE;
  second.config = 3;
  const auto header = header_of(
      PerfDataBuilder().event(stack_attr(), {5, 6}).event(second, {7}).record(comm(5, 1, 2, "x")));
  REQUIRE(header.events.size() == 2);
  CHECK(header.events[0].ids == std::vector<uint64_t>{5, 6});
  CHECK(header.events[0].attr.sample_freq == 997);
  CHECK(header.events[1].ids == std::vector<uint64_t>{7});
  CHECK(header.events[1].name == "0:0x3");
  CHECK_FALSE(header.is_cut_off);
  CHECK(header.data_bytes == comm(5, 1, 2, "x").size());
}

TEST_CASE("attributes of older and newer perfs have other sizes") {
  perf_event_attr attr = stack_attr();
  const auto old =
      header_of(PerfDataBuilder().attr_bytes(96).event(attr, {5}).record(finished_round()));
  CHECK(old.events[0].attr.sample_regs_user == 1);
  CHECK(old.events[0].attr.sample_stack_user == 8);
  attr.aux_watermark = 7;
  const auto first =
      header_of(PerfDataBuilder().attr_bytes(64).event(attr, {5}).record(finished_round()));
  CHECK(first.events[0].attr.sample_type == kSampleType);
  CHECK(first.events[0].attr.sample_regs_user == 0);
  CHECK(first.events[0].attr.aux_watermark == 0);
  const auto later =
      header_of(PerfDataBuilder().attr_bytes(256).event(attr, {5}).record(finished_round()));
  CHECK(later.events[0].attr.aux_watermark == 7);
  CHECK(later.events[0].ids == std::vector<uint64_t>{5});
}

TEST_CASE("build ids of older files end before the zeros behind them") {
  constexpr uint16_t kUser = PERF_RECORD_MISC_USER;
  const auto padded = [](size_t size_bytes) {
    std::vector<std::byte> id(20);
    std::fill_n(id.begin(), size_bytes, std::byte{7});
    std::vector<std::byte> record = build_id(kUser, 0, 0, "/bin/a");
    std::copy(id.begin(), id.end(), record.begin() + 12);
    return record;
  };
  std::vector<std::byte> ids;
  for (const size_t size_bytes : {8u, 16u, 17u, 20u}) append(ids, padded(size_bytes));
  const auto header = header_of(one_event().record(finished_round()).feature(2, ids));
  REQUIRE(header.build_ids.size() == 4);
  std::vector<size_t> sizes;
  for (const PerfBuildId& entry : header.build_ids) sizes.push_back(entry.build_id.size());
  CHECK(sizes == std::vector<size_t>{8, 16, 20, 20});
}

TEST_CASE("paths of build ids are bounded, each and all together") {
  std::vector<std::byte> ids = build_id(kUserWithSize, 1, 16, std::string(5000, 'a'));
  append(ids, build_id(kUserWithSize, 1, 16, "/bin/a"));
  CHECK(header_of(one_event().record(finished_round()).feature(2, ids)).build_ids.size() == 1);
  PerfDataHeader header;
  const auto record = build_id(kUserWithSize, 1, 16, std::string(4096, 'a'));
  for (size_t i = 0; i < 5000; ++i) add_perf_build_id(record, header);
  CHECK(header.build_ids.size() == kMaxPerfBuildIdPaths_bytes / 4096);
  CHECK(header.exceeds_limits);
}

TEST_CASE("what is more than is read is told, not left out in silence") {
  const std::vector<std::byte> largest(kMaxPerfFeature_bytes), larger(kMaxPerfFeature_bytes + 1);
  CHECK_FALSE(header_of(one_event().record(finished_round()).feature(4, largest)).exceeds_limits);
  CHECK(header_of(one_event().record(finished_round()).feature(4, larger)).exceeds_limits);
  PerfDataHeader header;
  const perf_event_attr attr = stack_attr();
  for (size_t i = 0; i < kMaxPerfEvents; ++i) {
    add_perf_attr({reinterpret_cast<const std::byte*>(&attr), sizeof attr}, header);
  }
  CHECK_FALSE(header.exceeds_limits);
  add_perf_attr({reinterpret_cast<const std::byte*>(&attr), sizeof attr}, header);
  CHECK(header.exceeds_limits);
  CHECK(header.events.size() == kMaxPerfEvents);
}

TEST_CASE("features tell build ids, clock, machine and names") {
  std::vector<std::byte> ids = build_id(kUserWithSize, 1, 16, "/bin/a");
  append(ids, build_id(PERF_RECORD_MISC_USER, 2, 0, "/bin/b"));
  append(ids, build_id(PERF_RECORD_MISC_KERNEL | (1u << 15), 3, 20, "[kernel.kallsyms]"));
  append(ids, build_id(kUserWithSize, 4, 21, "/bin/c"));
  std::vector<std::byte> arch, clock;
  append_number<uint32_t>(arch, 16);
  append(arch, RecordBuilder(0).raw("x86_64").zeros(10).build());
  arch.erase(arch.begin() + 4, arch.begin() + 12);
  append_number<uint32_t>(clock, 1);
  append_number<uint32_t>(clock, 1);
  append_number<uint64_t>(clock, 1'000);
  append_number<uint64_t>(clock, 10);
  const auto header = header_of(one_event()
                                    .record(finished_round())
                                    .feature(2, ids)
                                    .feature(3, text_of({"builder\0", 8}))
                                    .feature(6, arch)
                                    .feature(12, description_of({"cycles\0\0", 8}))
                                    .feature(29, clock));
  REQUIRE(header.build_ids.size() == 2);
  CHECK(header.build_ids[0].path == "/bin/a");
  CHECK(header.build_ids[0].build_id == std::vector<std::byte>(16, std::byte{1}));
  CHECK(header.build_ids[1].build_id == std::vector<std::byte>(20, std::byte{2}));
  CHECK(header.host_name == "builder");
  CHECK(header.arch == "x86_64");
  CHECK(header.events[0].name == "cycles");
  REQUIRE(header.clock);
  CHECK(header.clock->unix_ns == 1'000);
  CHECK(header.clock->record_ns == 10);
}

TEST_CASE("texts are printable and bounded, whatever the file says") {
  const auto header = header_of(one_event()
                                    .record(finished_round())
                                    .feature(4, text_of(std::string(9'000'000, 'r')))
                                    .feature(12, description_of("\x1b[31mred\n\xff\0")));
  CHECK(header.events[0].name == "\uFFFD[31mred\uFFFD\uFFFD");
  CHECK(header.os_release.size() <= kMaxPerfText_bytes);
  CHECK(header.os_release.starts_with("rrr"));
}

TEST_CASE("features that are cut off are left out") {
  std::vector<std::byte> ids = build_id(kUserWithSize, 1, 20, "/bin/a");
  append(ids, RecordBuilder(0, kUserWithSize).u32(0).build_with_size(100));
  const auto header = header_of(one_event()
                                    .record(finished_round())
                                    .feature(2, ids)
                                    .feature(6, bytes_of("abc"))
                                    .feature(29, bytes_of("abc")));
  CHECK(header.build_ids.size() == 1);
  CHECK(header.arch.empty());
  CHECK_FALSE(header.clock);
}

TEST_CASE("a file that ends before all of its features is told apart") {
  const std::vector<std::byte> whole =
      one_event().record(finished_round()).feature(3, bytes_of("abc")).feature(4, {}).bytes();
  for (const size_t missing_bytes : {0, 1, 3, 4, 35}) {
    auto file = whole;
    file.resize(file.size() - missing_bytes);
    const auto header = read_perf_header(MemoryByteSource(file));
    REQUIRE(header);
    CHECK(header->lacks_features == (missing_bytes > 0));
    CHECK_FALSE(header->is_cut_off);
  }
}

TEST_CASE("a file that perf did not finish has records up to its end") {
  std::vector<std::byte> file = one_event().record(comm(5, 1, 2, "x")).bytes();
  const size_t begin = file.size() - comm(5, 1, 2, "x").size();
  for (const uint64_t size_bytes : {uint64_t{0}, uint64_t{1} << 40, UINT64_MAX}) {
    put(file, 48, size_bytes);
    const auto header = read_perf_header(MemoryByteSource(file));
    REQUIRE(header);
    CHECK(header->is_cut_off);
    CHECK(header->data_offset == begin);
    CHECK(header->data_bytes == file.size() - begin);
  }
}

TEST_CASE("a file of a directory of perf record --threads is refused") {
  const auto header = read_perf_header(
      one_event().record(finished_round()).feature(24, std::vector<std::byte>(8)).file());
  REQUIRE_FALSE(header);
  CHECK(header.error().code == ErrorCode::Unsupported);
  CHECK(header.error().message.find("--threads") != std::string::npos);
}

TEST_CASE("what is no perf.data, or one of another machine, is told apart") {
  CHECK(error_of({}) == ErrorCode::Malformed);
  CHECK(error_of(bytes_of("PERFILE2")) == ErrorCode::Malformed);
  CHECK(error_of(bytes_of("{\"version\": \"2\" ...")) == ErrorCode::Malformed);
  CHECK(error_of(bytes_of("2ELIFREP0123456789abcdef")) == ErrorCode::Unsupported);
  CHECK(error_of(bytes_of("PERFFILE0123456789abcdef")) == ErrorCode::Unsupported);
  CHECK(error_of(bytes_of("PERFILE20123456789abcdef")) == ErrorCode::Unsupported);
  CHECK(is_perf_data("PERFILE2..."));
  CHECK_FALSE(is_perf_data("PERF"));
}

TEST_CASE("sections that lie outside of the file, or cannot be that large, are refused") {
  const std::vector<std::byte> right = one_event().record(finished_round()).bytes();
  // Offsets of the header's words: size of an attribute, events, records.
  for (const auto& [offset, value] :
       std::vector<std::pair<size_t, uint64_t>>{{16, 0},
                                                {16, 79},
                                                {16, 5'000},
                                                {16, UINT64_MAX},
                                                {24, right.size()},
                                                {24, UINT64_MAX},
                                                {32, right.size()},
                                                {32, UINT64_MAX},
                                                {40, right.size() + 1},
                                                {40, UINT64_MAX}}) {
    std::vector<std::byte> wrong = right;
    put(wrong, offset, value);
    CAPTURE(offset, value);
    CHECK_FALSE(read_perf_header(MemoryByteSource(wrong)));
  }
  std::vector<std::byte> wrong_ids = right;
  put(wrong_ids, 104 + 8 + sizeof(perf_event_attr) + 8, uint64_t{1} << 62);
  CHECK_FALSE(read_perf_header(MemoryByteSource(wrong_ids)));
}

TEST_CASE("a pipe's header says nothing but that it is one") {
  std::vector<std::byte> file = bytes_of("PERFILE2");
  append_number<uint64_t>(file, 16);
  append(file, finished_round());
  const auto header = read_perf_header(MemoryByteSource(file));
  REQUIRE(header);
  CHECK(header->data_offset == 16);
  CHECK(header->data_bytes == 8);
}
