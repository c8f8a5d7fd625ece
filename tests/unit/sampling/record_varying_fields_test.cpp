// Fields of samples that vary in size, in front of the registers: other tools' recordings have
// them, and ours the chain of frame pointers.
#include "sampling/record_decoder.h"
#include "support/catch2.h"
#include "support/record_builder.h"

#include <cstring>

using namespace sentry_prof;
using namespace sentry_prof::sampling;
using sentry_prof::test::kSampleType;
using sentry_prof::test::RecordBuilder;

namespace {

constexpr uint64_t kVarying =
    PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK;

RecordFields varying_fields() {
  RecordFields fields;
  fields.sample_type = kSampleType | kVarying;
  fields.register_mask = 1;
  fields.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID;
  fields.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX;
  return fields;
}

// Up to the registers.
RecordBuilder varying_sample(uint64_t addresses, std::vector<uint64_t> chain = {0, 0}) {
  RecordBuilder record(PERF_RECORD_SAMPLE);
  record.sample_head(7, 10, 11, 900, 3).zeros(24);  // READ: value, time, id
  record.u64(addresses);                            // CALLCHAIN
  for (const uint64_t address : chain) record.u64(address);
  record.u32(4).raw("1234");              // RAW
  return record.u64(1).u64(0).zeros(24);  // BRANCH_STACK of one
}

}  // namespace

TEST_CASE("fields of varying size in front of the registers are skipped") {
  const auto record = varying_sample(2).u64(2).u64(0xabc).u64(8).u64(0x5).u64(8).build();
  const DecodedRecord decoded = decode_record(*RecordLayout::create(varying_fields()), record);
  const auto& sample = std::get<SampleEvent>(decoded.event.body);
  CHECK(sample.tid == 11);
  REQUIRE(sample.registers.words.size() == 8);
  CHECK(sample.registers.words[0] == std::byte{0xbc});
  CHECK(sample.stack.size() == 8);
}

TEST_CASE("of a chain of frame pointers the user's part is given") {
  constexpr auto kKernel = static_cast<uint64_t>(PERF_CONTEXT_KERNEL);
  constexpr auto kUser = static_cast<uint64_t>(PERF_CONTEXT_USER);
  const auto chain_of = [](const std::vector<uint64_t>& chain) {
    const auto record =
        varying_sample(chain.size(), chain).u64(2).u64(0xabc).u64(8).u64(0x5).u64(8).build();
    const DecodedRecord decoded = decode_record(*RecordLayout::create(varying_fields()), record);
    const auto& sample = std::get<SampleEvent>(decoded.event.body);
    CHECK(sample.registers.words[0] == std::byte{0xbc});
    std::vector<uint64_t> words(sample.frame_pointer_chain.size() / 8);
    if (!words.empty())
      std::memcpy(words.data(), sample.frame_pointer_chain.data(), 8 * words.size());
    return words;
  };
  CHECK(chain_of({kUser, 0x1000, 0x2000}) == std::vector<uint64_t>{0x1000, 0x2000});
  CHECK(chain_of({kKernel, 0xffff800000000000, kUser, 0x1000}) == std::vector<uint64_t>{0x1000});
  CHECK(chain_of({kKernel, 0xffff800000000000}).empty());
  CHECK(chain_of({kUser}).empty());
  CHECK(chain_of({}).empty());
}

TEST_CASE("groups of counters are skipped") {
  RecordFields fields = varying_fields();
  fields.sample_type = kSampleType | PERF_SAMPLE_READ;
  fields.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_ID;
  const auto record = RecordBuilder(PERF_RECORD_SAMPLE)
                          .sample_head(7, 10, 11, 900, 3)
                          .u64(2)  // two of value and id, behind one time
                          .zeros(40)
                          .u64(2)
                          .u64(0xabc)
                          .u64(0)
                          .build();
  const DecodedRecord decoded = decode_record(*RecordLayout::create(fields), record);
  CHECK(std::get<SampleEvent>(decoded.event.body).registers.words[0] == std::byte{0xbc});
}

TEST_CASE("a field that claims more than its record has is undecodable") {
  for (const uint64_t addresses : {uint64_t{100}, uint64_t{1} << 61, UINT64_MAX}) {
    const auto record = varying_sample(addresses).u64(2).u64(0xabc).u64(0).build();
    const DecodedRecord decoded = decode_record(*RecordLayout::create(varying_fields()), record);
    const auto* undecodable = std::get_if<UndecodableEvent>(&decoded.event.body);
    REQUIRE(undecodable != nullptr);
    CHECK(undecodable->type == PERF_RECORD_SAMPLE);
  }
}
