// What a BPF ring buffer holds of stacks: whose it is, its gaps, its wrap, and damage.
#include "sampling/outer_stack_ring.h"

#include "support/catch2.h"

#include <cstring>
#include <utility>
#include <vector>

#include <linux/bpf.h>

using namespace sentry_prof;
using namespace sentry_prof::sampling;

namespace {

constexpr uint64_t kOuterRing_bytes = 128 * 1024;
constexpr uint64_t kRecord_bytes = 8 + sizeof(OuterBlockHeader) + kOuterBlock_bytes;
constexpr uint64_t kSampleStackPointer = 0x7000'1238;
constexpr uint64_t kBlockAddress = 0x7001'1000;
constexpr uint64_t kSampleTime_ns = 1'000'000'000;
constexpr uint64_t kPc = 0x5555'0010;
constexpr SampledMoment kSample{
    .tid = 7, .stack_pointer = kSampleStackPointer, .pc = kPc, .time_ns = kSampleTime_ns};

// A ring as the kernel writes it.
class KernelRing {
 public:
  void put_u32(uint64_t position, uint32_t value) {
    for (int i = 0; i < 4; ++i) at(position + i) = static_cast<std::byte>(value >> 8 * i);
  }
  // Each page holds its number, counted from `first_page`.
  void add(const OuterBlockHeader& header, uint8_t first_page, uint32_t flags = 0) {
    put_u32(producer, static_cast<uint32_t>(kRecord_bytes - 8) | flags);
    std::byte bytes[sizeof(header)];
    std::memcpy(bytes, &header, sizeof(header));
    for (size_t i = 0; i < sizeof(header); ++i) at(producer + 8 + i) = bytes[i];
    for (size_t i = 0; i < kOuterBlock_bytes; ++i) {
      at(producer + 8 + sizeof(header) + i) =
          static_cast<std::byte>(first_page + i / kOuterPage_bytes);
    }
    producer += kRecord_bytes;
  }

  std::vector<std::byte> data = std::vector<std::byte>(kOuterRing_bytes);
  uint64_t producer = 0;

 private:
  std::byte& at(uint64_t position) { return data[position % kOuterRing_bytes]; }
};

OuterBlockHeader header_at(uint64_t address, uint32_t pages_missing = 0) {
  return {.tid = 7,
          .pages_missing = pages_missing,
          .stack_pointer = kSampleStackPointer,
          .pc = kPc,
          .time_ns = kSampleTime_ns,
          .address = address};
}

size_t total_size_of(std::span<const StackPiece> pieces) {
  size_t bytes = 0;
  for (const StackPiece& piece : pieces) bytes += piece.bytes.size();
  return bytes;
}

}  // namespace

TEST_CASE("the blocks of a sample are its thread's, with its stack pointer, of its time") {
  KernelRing kernel;
  kernel.add(header_at(kBlockAddress), 1);
  kernel.add(header_at(kBlockAddress + kOuterBlock_bytes), 5);
  OuterStackRing ring(kernel.data, kMaxCopying_ns);
  ring.look(0, kernel.producer);
  const auto pieces = ring.pieces_of(kSample);
  REQUIRE(pieces.size() == 2);  // between them in the ring lies a header
  CHECK(pieces[0].begin.value == kBlockAddress);
  CHECK(pieces[0].bytes.size() == kOuterBlock_bytes);
  CHECK(pieces[0].bytes.back() == std::byte{4});
  CHECK(pieces[1].begin.value == kBlockAddress + kOuterBlock_bytes);
  CHECK(pieces[1].bytes.front() == std::byte{5});

  CHECK(ring.pieces_of(kSample).empty());  // once
  kernel.add(header_at(kBlockAddress + 2 * kOuterBlock_bytes), 9);
  ring.look(kRecord_bytes, kernel.producer);
  const auto new_pieces = ring.pieces_of(kSample);
  REQUIRE(new_pieces.size() == 1);
  CHECK(new_pieces[0].bytes.front() == std::byte{9});
}

TEST_CASE("blocks are of no sample of another thread, place or time") {
  KernelRing kernel;
  kernel.add(header_at(kBlockAddress), 1);
  const auto is_of = [&](const SampledMoment& sample) {
    OuterStackRing ring(kernel.data, kMaxCopying_ns);
    ring.look(0, kernel.producer);
    return !ring.pieces_of(sample).empty();
  };
  CHECK(is_of(kSample));
  SampledMoment other = kSample;
  other.tid = 8;
  CHECK_FALSE(is_of(other));
  other = kSample;
  other.stack_pointer += 8;
  CHECK_FALSE(is_of(other));
  other = kSample;
  other.pc += 1;
  CHECK_FALSE(is_of(other));
  // Its time was taken before the program ran, or when it was done (before Linux 6.3).
  for (const auto& [apart_ns, expected] : std::initializer_list<std::pair<int64_t, bool>>{
           {-20'000, true}, {-20'001, false}, {500'000, true}, {500'001, false}}) {
    other = kSample;
    other.time_ns = kSampleTime_ns + static_cast<uint64_t>(apart_ns);
    CHECK(is_of(other) == expected);
  }
}

TEST_CASE("blocks are not of a sample that comes half a period later") {
  CHECK(max_copying_ns(101) == kMaxCopying_ns);
  CHECK(max_copying_ns(1'000) == kMaxCopying_ns);
  CHECK(max_copying_ns(10'000) == 50'000);
  KernelRing kernel;
  kernel.add(header_at(kBlockAddress), 1);
  OuterStackRing ring(kernel.data, max_copying_ns(10'000));
  ring.look(0, kernel.producer);
  SampledMoment later = kSample;
  later.time_ns += 100'000;
  CHECK(ring.pieces_of(later).empty());
  CHECK_FALSE(ring.pieces_of(kSample).empty());
}

TEST_CASE("of samples in one place each has its own blocks, or none") {
  KernelRing kernel;
  OuterBlockHeader header = header_at(kBlockAddress);
  // At 0.2 ms one whose record was lost.
  for (const auto& [after_ns, first_page] :
       std::initializer_list<std::pair<uint64_t, uint8_t>>{{0, 1}, {200'000, 11}, {400'000, 21}}) {
    header.time_ns = kSampleTime_ns + after_ns;
    kernel.add(header, first_page);
  }
  OuterStackRing ring(kernel.data, kMaxCopying_ns);
  ring.look(0, kernel.producer);
  SampledMoment sample = kSample;
  for (const auto& [after_ns, first_page] : std::initializer_list<std::pair<uint64_t, int>>{
           {0, 1}, {400'000, 21}, {500'000, 0}, {2'000'000, 0}}) {
    sample.time_ns = kSampleTime_ns + after_ns;
    const auto pieces = ring.pieces_of(sample);
    REQUIRE(pieces.size() == (first_page != 0 ? 1 : 0));
    if (first_page != 0) CHECK(pieces[0].bytes.front() == static_cast<std::byte>(first_page));
  }
}

TEST_CASE("pages that were not there are in no piece") {
  KernelRing kernel;
  kernel.add(header_at(kBlockAddress, 0b0010), 0);
  kernel.add(header_at(kBlockAddress + kOuterBlock_bytes, 0b1111), 4);
  OuterStackRing ring(kernel.data, kMaxCopying_ns);
  ring.look(0, kernel.producer);
  const auto pieces = ring.pieces_of(kSample);
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[0].bytes.size() == kOuterPage_bytes);
  CHECK(pieces[1].begin.value == kBlockAddress + 2 * kOuterPage_bytes);
  CHECK(pieces[1].bytes.size() == 2 * kOuterPage_bytes);
  CHECK(pieces[1].bytes.front() == std::byte{2});
}

TEST_CASE("a block that goes on at the ring's begin is two pieces, and no byte is lost") {
  KernelRing kernel;
  kernel.producer = 10 * kOuterRing_bytes - kRecord_bytes / 2;
  const uint64_t consumer = kernel.producer;
  kernel.add(header_at(kBlockAddress), 1);
  OuterStackRing ring(kernel.data, kMaxCopying_ns);
  ring.look(consumer, kernel.producer);
  const auto pieces = ring.pieces_of(kSample);
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[0].begin.value + pieces[0].bytes.size() == pieces[1].begin.value);
  CHECK(total_size_of(pieces) == kOuterBlock_bytes);
  CHECK(pieces[1].bytes.back() == std::byte{4});
}

TEST_CASE("what is given back is what is older, from the front on") {
  KernelRing kernel;
  OuterBlockHeader header = header_at(kBlockAddress);
  for (const uint64_t time_ns : {kSampleTime_ns, kSampleTime_ns + 20, kSampleTime_ns + 10}) {
    header.time_ns = time_ns;
    kernel.add(header, 1);
  }
  OuterStackRing ring(kernel.data, kMaxCopying_ns);
  ring.look(0, kernel.producer);
  CHECK(ring.forget_before(kSampleTime_ns) == 0);
  CHECK(ring.forget_before(kSampleTime_ns + 1) == kRecord_bytes);
  CHECK(ring.forget_before(kSampleTime_ns + 15) == kRecord_bytes);
  CHECK(total_size_of(ring.pieces_of(kSample)) == kOuterBlock_bytes);  // that at 20 ns
  CHECK(ring.forget_before(kSampleTime_ns + 21) == 3 * kRecord_bytes);
}

TEST_CASE("what was given back is of no sample") {
  KernelRing kernel;
  kernel.add(header_at(kBlockAddress), 1);
  OuterStackRing ring(kernel.data, kMaxCopying_ns);
  ring.look(0, kernel.producer);
  CHECK(ring.forget_before(kSampleTime_ns + 1) == kRecord_bytes);
  CHECK(ring.pieces_of(kSample).empty());
}

TEST_CASE("a block that is being written ends the look, one that was given up is passed over") {
  KernelRing kernel;
  kernel.add(header_at(kBlockAddress), 1, BPF_RINGBUF_DISCARD_BIT);
  kernel.add(header_at(kBlockAddress), 1);
  kernel.add(header_at(kBlockAddress + kOuterBlock_bytes), 1, BPF_RINGBUF_BUSY_BIT);
  kernel.add(header_at(kBlockAddress + 2 * kOuterBlock_bytes), 1);
  OuterStackRing ring(kernel.data, kMaxCopying_ns);
  ring.look(0, kernel.producer);
  CHECK(total_size_of(ring.pieces_of(kSample)) == kOuterBlock_bytes);
  CHECK(ring.forget_before(UINT64_MAX) == 2 * kRecord_bytes);
  ring.look(0, kRecord_bytes);
  CHECK(ring.forget_before(0) == kRecord_bytes);  // nothing but what was given up
}

TEST_CASE("positions may count beyond their last number") {
  KernelRing kernel;
  kernel.producer = UINT64_MAX - kRecord_bytes / 2 + 1;
  const uint64_t consumer = kernel.producer;
  kernel.add(header_at(kBlockAddress), 1);
  OuterStackRing ring(kernel.data, kMaxCopying_ns);
  ring.look(consumer, kernel.producer);
  CHECK(total_size_of(ring.pieces_of(kSample)) == kOuterBlock_bytes);
  CHECK(ring.forget_before(UINT64_MAX) == kernel.producer);
}

TEST_CASE("a damaged ring gives nothing, and comes to an end") {
  KernelRing kernel;
  kernel.add(header_at(kBlockAddress), 1);
  OuterStackRing ring(kernel.data, kMaxCopying_ns);
  for (const auto& [consumer, producer] : std::initializer_list<std::pair<uint64_t, uint64_t>>{
           {kRecord_bytes, 0}, {0, kOuterRing_bytes + 8}, {0, kRecord_bytes - 8}, {0, 4}}) {
    ring.look(consumer, producer);
    CHECK(ring.pieces_of(kSample).empty());
    CHECK(ring.forget_before(UINT64_MAX) == consumer);
  }
  kernel.put_u32(0, 0x3fff'fff8);  // longer than the ring
  ring.look(0, kernel.producer);
  CHECK(ring.pieces_of(kSample).empty());
}
