#include "sampling/record_decoder.h"

#include "support/catch2.h"
#include "support/record_builder.h"

#include <cstring>

#include <sys/mman.h>

using namespace sentry_prof;
using namespace sentry_prof::sampling;
using sentry_prof::test::kSampleType;
using sentry_prof::test::RecordBuilder;

namespace {

constexpr uint64_t kThreeRegisters = 0b1000011;

RecordLayout sample_layout() { return *RecordLayout::create(kSampleType, kThreeRegisters, true); }

DecodedRecord decode(const std::vector<std::byte>& record) {
  return decode_record(sample_layout(), record);
}

RecordBuilder sample() {
  return RecordBuilder(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER).sample_head(77, 10, 11, 5000, 3);
}

RecordBuilder sample_with_registers() {
  return sample().u64(PERF_SAMPLE_REGS_ABI_64).u64(1).u64(2).u64(3);
}

bool is_undecodable(const DecodedRecord& decoded, uint32_t type) {
  const auto* body = std::get_if<UndecodableEvent>(&decoded.event.body);
  return body != nullptr && body->type == type;
}

}  // namespace

TEST_CASE("a sample gives thread, time, registers and the filled part of its stack") {
  const auto record =
      sample_with_registers().u64(32).u64(0xa).u64(0xb).u64(0xc).u64(0xd).u64(16).build();
  const DecodedRecord decoded = decode(record);
  CHECK(decoded.identifier == 77);
  CHECK(decoded.event.time_ns == 5000);
  const auto& body = std::get<SampleEvent>(decoded.event.body);
  CHECK(body.pid == 10);
  CHECK(body.tid == 11);
  CHECK(body.cpu == 3);
  CHECK(body.registers.is_present);
  CHECK_FALSE(body.registers.is_32_bit);
  ByteReader words(body.registers.words, std::endian::native);
  CHECK(words.u64() == 1);
  CHECK(words.u64() == 2);
  CHECK(words.u64() == 3);
  CHECK(words.at_end());
  ByteReader stack(body.stack, std::endian::native);
  CHECK(stack.u64() == 0xa);
  CHECK(stack.u64() == 0xb);
  CHECK(stack.at_end());
  CHECK_FALSE(body.stack_is_cut);
}

TEST_CASE("a stack that fills all of its room is cut") {
  const auto record = sample_with_registers().u64(16).u64(0xa).u64(0xb).u64(16).build();
  const auto body = std::get<SampleEvent>(decode(record).event.body);
  CHECK(body.stack.size() == 16);
  CHECK(body.stack_is_cut);
}

TEST_CASE("registers and stack of a sample are not copied") {
  const auto record = sample_with_registers().u64(8).u64(0xa).u64(8).build();
  const auto body = std::get<SampleEvent>(decode(record).event.body);
  const std::byte* begin = record.data();
  CHECK(body.registers.words.data() == begin + 8 + 32 + 8);
  CHECK(body.stack.data() == begin + 8 + 32 + 8 + 24 + 8);
}

TEST_CASE("a sample without user registers has neither registers nor stack") {
  const auto body = std::get<SampleEvent>(decode(sample().u64(0).u64(0).build()).event.body);
  CHECK_FALSE(body.registers.is_present);
  CHECK(body.registers.words.empty());
  CHECK(body.stack.empty());
}

TEST_CASE("a sample of a 32-bit thread says so") {
  const auto record = sample().u64(PERF_SAMPLE_REGS_ABI_32).u64(1).u64(2).u64(3).u64(0).build();
  const auto body = std::get<SampleEvent>(decode(record).event.body);
  CHECK(body.registers.is_present);
  CHECK(body.registers.is_32_bit);
  CHECK(body.registers.words.size() == 24);
}

TEST_CASE("a sample of which no stack could be copied has an empty stack") {
  const auto record = sample_with_registers().u64(16).zeros(16).u64(0).build();
  CHECK(std::get<SampleEvent>(decode(record).event.body).stack.empty());
}

TEST_CASE("padding at the end of a sample is ignored") {
  const auto record = sample_with_registers().u64(8).u64(0xa).u64(8).zeros(24).build();
  CHECK(std::get<SampleEvent>(decode(record).event.body).stack.size() == 8);
}

TEST_CASE("a sample that says more than it holds is undecodable") {
  const auto whole = sample_with_registers().u64(16).zeros(16).u64(16).build();
  for (size_t size = RecordHeader::kSize_bytes; size < whole.size(); ++size) {
    auto cut = std::vector<std::byte>(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    const auto size_bytes = static_cast<uint16_t>(size);
    std::memcpy(cut.data() + 6, &size_bytes, sizeof size_bytes);
    CAPTURE(size);
    CHECK(is_undecodable(decode(cut), PERF_RECORD_SAMPLE));
  }
}

TEST_CASE("impossible sizes inside a sample make it undecodable") {
  const uint64_t huge = ~uint64_t{0};
  CHECK(
      is_undecodable(decode(sample_with_registers().u64(huge).u64(0).build()), PERF_RECORD_SAMPLE));
  CHECK(is_undecodable(decode(sample_with_registers().u64(8).u64(0).u64(9).build()),
                       PERF_RECORD_SAMPLE));
  CHECK(is_undecodable(decode(sample_with_registers().u64(8).u64(0).u64(huge).build()),
                       PERF_RECORD_SAMPLE));
  CHECK(is_undecodable(decode(sample().u64(3).u64(1).u64(2).u64(3).u64(0).build()),
                       PERF_RECORD_SAMPLE));
}

TEST_CASE("an undecodable sample keeps its time if it holds one") {
  CHECK(decode(sample().build()).event.time_ns == 5000);
}

TEST_CASE("a header that claims more or less than a record is undecodable") {
  const RecordBuilder record = sample_with_registers().u64(0);
  CHECK(is_undecodable(decode(record.build_with_size(2000)), PERF_RECORD_SAMPLE));
  CHECK(is_undecodable(decode(record.build_with_size(0)), PERF_RECORD_SAMPLE));
  CHECK(is_undecodable(decode(record.build_with_size(7)), PERF_RECORD_SAMPLE));
  CHECK(is_undecodable(decode_record(sample_layout(), {}), 0));
}

TEST_CASE("MMAP2 without a build id gives device and inode") {
  const auto record = RecordBuilder(PERF_RECORD_MMAP2)
                          .u32(10)
                          .u32(11)
                          .u64(0x7f0000)
                          .u64(0x2000)
                          .u64(0x1000)
                          .u32(8)
                          .u32(1)
                          .u64(4242)
                          .u64(7)
                          .u32(PROT_READ | PROT_EXEC)
                          .u32(2)
                          .string("/usr/lib/libc.so.6")
                          .trailer(10, 11, 900, 1, 55)
                          .build();
  const DecodedRecord decoded = decode(record);
  const auto& map = std::get<MapEvent>(decoded.event.body);
  CHECK(decoded.event.time_ns == 900);
  CHECK(decoded.identifier == 55);
  CHECK(map.pid == 10);
  CHECK(map.tid == 11);
  CHECK(map.begin.value == 0x7f0000);
  CHECK(map.size_bytes == 0x2000);
  CHECK(map.file_offset == 0x1000);
  CHECK(map.device_major == 8);
  CHECK(map.device_minor == 1);
  CHECK(map.inode == 4242);
  CHECK(map.build_id_size_bytes == 0);
  CHECK(map.path == "/usr/lib/libc.so.6");
}

namespace {

std::vector<std::byte> mmap2_with_build_id(uint8_t size_bytes) {
  RecordBuilder record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
  record.u32(10).u32(11).u64(0x7f0000).u64(0x2000).u64(0).u8(size_bytes).u8(0).u16(0);
  for (uint8_t i = 0; i < 20; ++i) record.u8(static_cast<uint8_t>(i + 1));
  return record.u32(PROT_EXEC).u32(2).string("/bin/true").trailer(10, 11, 900, 1, 55).build();
}

}  // namespace

TEST_CASE("MMAP2 with a build id gives as many bytes as it has") {
  const auto record = mmap2_with_build_id(16);
  const auto map = std::get<MapEvent>(decode(record).event.body);
  CHECK(map.build_id_size_bytes == 16);
  CHECK(map.build_id[0] == std::byte{1});
  CHECK(map.build_id[15] == std::byte{16});
  CHECK(map.build_id[16] == std::byte{0});
  CHECK(map.inode == 0);
  CHECK(map.path == "/bin/true");
}

TEST_CASE("MMAP2 with a build id that cannot be is undecodable") {
  CHECK(std::holds_alternative<MapEvent>(decode(mmap2_with_build_id(20)).event.body));
  CHECK(is_undecodable(decode(mmap2_with_build_id(21)), PERF_RECORD_MMAP2));
  CHECK(is_undecodable(decode(mmap2_with_build_id(255)), PERF_RECORD_MMAP2));
}

TEST_CASE("a build id's flag left over from another event's record is not believed") {
  RecordFields fields;
  fields.sample_type = kSampleType;
  fields.asks_build_ids = false;
  const RecordLayout layout = *RecordLayout::create(fields);
  for (const uint32_t major : {8u, 254u, 259u}) {  // sd, device mapper, nvme
    const auto record = RecordBuilder(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID)
                            .u32(10)
                            .u32(11)
                            .u64(0x7f0000)
                            .u64(0x2000)
                            .u64(0)
                            .u32(major)
                            .u32(1)
                            .u64(4242)
                            .u64(7)
                            .u32(PROT_EXEC)
                            .u32(2)
                            .string("/bin/true")
                            .trailer(10, 11, 900, 1, 55)
                            .build();
    const auto map = std::get<MapEvent>(decode_record(layout, record).event.body);
    CHECK(map.build_id_size_bytes == 0);
    CHECK(map.device_major == major);
    CHECK(map.inode == 4242);
    CHECK(map.path == "/bin/true");
  }
  const auto injected = mmap2_with_build_id(20);
  const auto map = std::get<MapEvent>(decode_record(layout, injected).event.body);
  CHECK(map.build_id_size_bytes == 20);
}

TEST_CASE("a string without an end stops at the trailer") {
  const auto record = RecordBuilder(PERF_RECORD_COMM)
                          .u32(10)
                          .u32(11)
                          .raw("12345678")
                          .trailer(0x41414141, 11, 900, 1, 55)
                          .build();
  CHECK(std::get<CommEvent>(decode(record).event.body).name == "12345678");
}

TEST_CASE("names and paths that no kernel gives are undecodable") {
  const auto named = [](size_t size_bytes) {
    return RecordBuilder(PERF_RECORD_COMM)
        .u32(10)
        .u32(11)
        .string(std::string(size_bytes, 'a'))
        .trailer(10, 11, 900, 1, 55)
        .build();
  };
  const auto longest = named(64), too_long = named(65);
  CHECK(std::holds_alternative<CommEvent>(decode(longest).event.body));
  CHECK(std::holds_alternative<UndecodableEvent>(decode(too_long).event.body));
  const auto mapped = [](size_t size_bytes) {
    return RecordBuilder(PERF_RECORD_MMAP)
        .u32(10)
        .u32(11)
        .u64(0x1000)
        .u64(0x1000)
        .u64(0)
        .string(std::string(size_bytes, 'a'))
        .trailer(10, 11, 900, 1, 55)
        .build();
  };
  const auto long_path = mapped(4096), longer_path = mapped(4097);
  CHECK(std::holds_alternative<MapEvent>(decode(long_path).event.body));
  CHECK(std::holds_alternative<UndecodableEvent>(decode(longer_path).event.body));
}

TEST_CASE("COMM tells an exec from a new name") {
  const auto with = [](uint16_t misc) {
    return RecordBuilder(PERF_RECORD_COMM, misc)
        .u32(10)
        .u32(11)
        .string("worker")
        .trailer(10, 11, 900, 1, 55)
        .build();
  };
  const auto renamed_record = with(0);
  const auto renamed = std::get<CommEvent>(decode(renamed_record).event.body);
  CHECK(renamed.pid == 10);
  CHECK(renamed.tid == 11);
  CHECK(renamed.name == "worker");
  CHECK_FALSE(renamed.is_exec);
  const auto exec_record = with(PERF_RECORD_MISC_COMM_EXEC);
  CHECK(std::get<CommEvent>(decode(exec_record).event.body).is_exec);
}

TEST_CASE("FORK and EXIT name the thread and its parent") {
  const auto with = [](uint32_t type) {
    return RecordBuilder(type)
        .u32(20)
        .u32(10)
        .u32(21)
        .u32(11)
        .u64(899)
        .trailer(10, 11, 900, 1, 55)
        .build();
  };
  const DecodedRecord decoded = decode(with(PERF_RECORD_FORK));
  const auto& fork = std::get<ForkEvent>(decoded.event.body);
  CHECK(decoded.event.time_ns == 900);
  CHECK(fork.pid == 20);
  CHECK(fork.parent_pid == 10);
  CHECK(fork.tid == 21);
  CHECK(fork.parent_tid == 11);
  const auto exit = std::get<ExitEvent>(decode(with(PERF_RECORD_EXIT)).event.body);
  CHECK(exit.pid == 20);
  CHECK(exit.tid == 21);
}

TEST_CASE("SWITCH takes its thread from the trailer and tells in from out") {
  const auto decode_switch = [](uint16_t misc) {
    const auto record = RecordBuilder(PERF_RECORD_SWITCH, misc).trailer(10, 11, 900, 1, 55).build();
    return std::get<SwitchEvent>(decode(record).event.body);
  };
  const SwitchEvent in = decode_switch(0);
  CHECK(in.pid == 10);
  CHECK(in.tid == 11);
  CHECK_FALSE(in.is_out);
  const SwitchEvent out = decode_switch(PERF_RECORD_MISC_SWITCH_OUT);
  CHECK(out.is_out);
}

TEST_CASE("LOST and LOST_SAMPLES give their counts") {
  const auto lost =
      RecordBuilder(PERF_RECORD_LOST).u64(55).u64(1234).trailer(10, 11, 900, 1, 55).build();
  CHECK(std::get<LostEvent>(decode(lost).event.body).count == 1234);
  const auto samples =
      RecordBuilder(PERF_RECORD_LOST_SAMPLES).u64(7).trailer(10, 11, 900, 1, 55).build();
  CHECK(std::get<LostEvent>(decode(samples).event.body).count == 7);
}

TEST_CASE("THROTTLE begins and UNTHROTTLE ends") {
  const auto begins = [](uint32_t type) {
    const auto record =
        RecordBuilder(type).u64(899).u64(55).u64(56).trailer(10, 11, 900, 1, 55).build();
    return std::get<ThrottleEvent>(decode(record).event.body).begins;
  };
  CHECK(begins(PERF_RECORD_THROTTLE));
  CHECK_FALSE(begins(PERF_RECORD_UNTHROTTLE));
}

TEST_CASE("a type that nobody knows is told apart from a broken record") {
  const auto is_known = [](uint32_t type) {
    return decode(RecordBuilder(type).u64(1).trailer(10, 11, 900, 1, 55).build()).is_known_type;
  };
  CHECK_FALSE(is_known(4711));
  CHECK_FALSE(is_known(PERF_RECORD_READ));
  CHECK(is_known(PERF_RECORD_SWITCH));
  for (uint32_t type = 0; type < 100; ++type) CHECK(is_event_type(type) == is_known(type));
}

TEST_CASE("a side-band record too short for its fields is undecodable") {
  for (uint32_t type :
       {PERF_RECORD_MMAP2, PERF_RECORD_COMM, PERF_RECORD_FORK, PERF_RECORD_EXIT, PERF_RECORD_LOST,
        PERF_RECORD_LOST_SAMPLES, PERF_RECORD_THROTTLE, PERF_RECORD_UNTHROTTLE}) {
    CAPTURE(type);
    CHECK(is_undecodable(decode(RecordBuilder(type).trailer(10, 11, 900, 1, 55).build()), type));
    CHECK(is_undecodable(decode(RecordBuilder(type).u64(0).u64(0).build()), type));
  }
  CHECK(is_undecodable(decode(RecordBuilder(PERF_RECORD_SWITCH).build()), PERF_RECORD_SWITCH));
}

TEST_CASE("without a trailer, records are read to their end and have no time") {
  const auto bare = RecordLayout::create(kSampleType, 0, false);
  const auto record = RecordBuilder(PERF_RECORD_COMM).u32(10).u32(11).string("worker").build();
  const DecodedRecord decoded = decode_record(*bare, record);
  CHECK(std::get<CommEvent>(decoded.event.body).name == "worker");
  CHECK(decoded.event.time_ns == 0);
}

TEST_CASE("fields of fixed size that are not used are stepped over") {
  const uint64_t type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
                        PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
                        PERF_SAMPLE_PERIOD | PERF_SAMPLE_STACK_USER;
  const auto record = RecordBuilder(PERF_RECORD_SAMPLE)
                          .u64(1)
                          .u32(10)
                          .u32(11)
                          .u64(5000)
                          .u64(2)
                          .u64(3)
                          .u64(4)
                          .u32(9)
                          .u32(0)
                          .u64(6)
                          .u64(8)
                          .u64(0xa)
                          .u64(8)
                          .build();
  const DecodedRecord decoded = decode_record(*RecordLayout::create(type, 0, true), record);
  const auto& body = std::get<SampleEvent>(decoded.event.body);
  CHECK(decoded.event.time_ns == 5000);
  CHECK(body.tid == 11);
  CHECK(body.cpu == 9);
  CHECK(body.stack.size() == 8);
}

TEST_CASE("MMAP tells the mapping and whether it is of data") {
  const auto map_of = [](uint16_t misc) {
    const auto record = RecordBuilder(PERF_RECORD_MMAP, misc)
                            .u32(10)
                            .u32(11)
                            .u64(0x7f0000)
                            .u64(0x2000)
                            .u64(0x1000)
                            .string("/usr/lib/libc.so.6")
                            .trailer(10, 11, 900, 1, 55)
                            .build();
    return std::get<MapEvent>(decode(record).event.body);
  };
  CHECK(map_of(0).begin.value == 0x7f0000);
  CHECK(map_of(0).size_bytes == 0x2000);
  CHECK(map_of(0).file_offset == 0x1000);
  CHECK_FALSE(map_of(0).is_data);
  CHECK(map_of(PERF_RECORD_MISC_MMAP_DATA).is_data);
}

TEST_CASE("a switch on a whole CPU is that of the trailer's thread") {
  const auto record = RecordBuilder(PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT)
                          .u32(77)  // the next one's
                          .u32(78)
                          .trailer(10, 11, 900, 1, 55)
                          .build();
  const auto change = std::get<SwitchEvent>(decode(record).event.body);
  CHECK(change.tid == 11);
  CHECK(change.is_out);
}

TEST_CASE("without IDENTIFIER the ID tells the event") {
  RecordFields fields;
  fields.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_PERIOD;
  const RecordLayout layout = *RecordLayout::create(fields);
  CHECK(layout.sample_identifier_offset() == 24);
  CHECK(layout.trailer_identifier_offset() == 16);
  fields.sample_type |= PERF_SAMPLE_IDENTIFIER;
  CHECK(RecordLayout::create(fields)->sample_identifier_offset() == 8);
}

TEST_CASE("layouts that cannot be decoded are refused") {
  for (uint64_t field : {PERF_SAMPLE_READ, PERF_SAMPLE_BRANCH_STACK}) {
    CHECK(RecordLayout::create(kSampleType | field, 0, true).error().code ==
          ErrorCode::Unsupported);
  }
  CHECK_FALSE(RecordLayout::create(PERF_SAMPLE_TID, 0, true).has_value());
  CHECK_FALSE(RecordLayout::create(PERF_SAMPLE_TIME, 0, true).has_value());
}

TEST_CASE("the time of a record is found without decoding it") {
  const auto time_at = [](const std::vector<std::byte>& record) {
    return record_time_offset(sample_layout(), read_record_header(record));
  };
  CHECK(time_at(sample().u64(0).u64(0).build()) == 8 + 8 + 8);
  CHECK(time_at(RecordBuilder(PERF_RECORD_SWITCH).trailer(10, 11, 900, 1, 55).build()) == 8 + 8);
  CHECK(time_at(RecordBuilder(PERF_RECORD_SAMPLE).u64(0).build()) == RecordLayout::kAbsent);
  CHECK(time_at(RecordBuilder(PERF_RECORD_SWITCH).u64(0).build()) == RecordLayout::kAbsent);
}
