#include "sampling/outer_stack_ring.h"

#include "base/time_units.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include <linux/bpf.h>

namespace sentry_prof::sampling {
namespace {

constexpr uint64_t kLengthField_bytes = BPF_RINGBUF_HDR_SZ;
constexpr uint32_t kFlags = BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT;

uint64_t round_up_to_word(uint64_t bytes) { return (bytes + 7) & ~uint64_t{7}; }

}  // namespace

uint64_t max_copying_ns(uint32_t frequency_hz) {
  return std::min(kMaxCopying_ns, kNsPerSecond / 2 / std::max(frequency_hz, 1u));
}

void OuterStackRing::look(uint64_t consumer, uint64_t producer) {
  const std::vector<Block> before = std::exchange(blocks_, {});
  auto last = before.begin();
  consumer_ = looked_at_ = consumer;
  uint64_t left_bytes = producer - consumer;
  if (left_bytes > data_.size()) return;
  while (left_bytes >= kLengthField_bytes) {
    uint32_t length = 0;
    if (!read(consumer, std::as_writable_bytes(std::span(&length, 1)))) return;
    if ((length & BPF_RINGBUF_BUSY_BIT) != 0) return;
    std::atomic_thread_fence(std::memory_order_acquire);  // that bit is taken away last
    const uint64_t size_bytes = length & ~kFlags;
    const uint64_t record_bytes = kLengthField_bytes + round_up_to_word(size_bytes);
    if (record_bytes > left_bytes) return;
    const uint64_t end = consumer + record_bytes;
    Block block{.position = consumer + kLengthField_bytes + sizeof(OuterBlockHeader), .end = end};
    const bool is_block = (length & BPF_RINGBUF_DISCARD_BIT) == 0 &&
                          size_bytes == sizeof(OuterBlockHeader) + kOuterBlock_bytes;
    if (is_block &&
        read(consumer + kLengthField_bytes, std::as_writable_bytes(std::span(&block.header, 1)))) {
      last = std::find_if(last, before.end(), [&](const Block& known) { return known.end == end; });
      block.is_taken = last != before.end() && last->is_taken;
      blocks_.push_back(block);
    }
    consumer = looked_at_ = end;
    left_bytes -= record_bytes;
  }
}

bool OuterStackRing::read(uint64_t position, std::span<std::byte> out) const {
  if (out.size() > data_.size()) return false;
  const size_t begin = position & (data_.size() - 1);
  const size_t before_end = std::min(out.size(), data_.size() - begin);
  std::memcpy(out.data(), data_.data() + begin, before_end);
  std::memcpy(out.data() + before_end, data_.data(), out.size() - before_end);
  return true;
}

// All blocks of a sample have one time. A hot leaf has the same stack pointer and pc in one sample
// after the other: the sample's are the last ones that can be.
std::span<const StackPiece> OuterStackRing::pieces_of(const SampledMoment& sample) {
  pieces_.clear();
  std::optional<uint64_t> time_ns;
  for (const Block& block : blocks_) {
    if (is_of(block, sample)) time_ns = std::max(time_ns.value_or(0), block.header.time_ns);
  }
  if (!time_ns) return {};
  for (Block& block : blocks_) {
    if (block.header.tid != sample.tid || block.header.time_ns > *time_ns) continue;
    if (block.header.time_ns == *time_ns && !block.is_taken) add_pieces(block);
    block.is_taken = true;
  }
  return pieces_;
}

bool OuterStackRing::is_of(const Block& block, const SampledMoment& sample) const {
  const OuterBlockHeader& header = block.header;
  const bool is_near = header.time_ns <= sample.time_ns + kMaxOuterDelay_ns &&
                       header.time_ns + max_copying_ns_ >= sample.time_ns;
  return is_near && !block.is_taken && header.tid == sample.tid &&
         header.stack_pointer == sample.stack_pointer && header.pc == sample.pc;
}

void OuterStackRing::add_pieces(const Block& block) {
  for (size_t page = 0; page < kOuterBlock_pages; ++page) {
    const bool is_missing = (block.header.pages_missing >> page & 1) != 0;
    const uint64_t offset = page * kOuterPage_bytes;
    if (is_missing) continue;
    const uint64_t position = block.position + offset;
    const size_t before_wrap =
        std::min<size_t>(kOuterPage_bytes, data_.size() - (position & (data_.size() - 1)));
    add_piece(block.header.address + offset, position, before_wrap);
    add_piece(block.header.address + offset + before_wrap, position + before_wrap,
              kOuterPage_bytes - before_wrap);
  }
}

// One with the last if both its addresses and its bytes follow.
void OuterStackRing::add_piece(uint64_t address, uint64_t position, size_t size_bytes) {
  if (size_bytes == 0) return;
  const Bytes bytes = data_.subspan(position & (data_.size() - 1), size_bytes);
  if (!pieces_.empty()) {
    StackPiece& last = pieces_.back();
    const bool follows = last.begin.value + last.bytes.size() == address &&
                         last.bytes.data() + last.bytes.size() == bytes.data();
    if (follows) {
      last.bytes = Bytes(last.bytes.data(), last.bytes.size() + size_bytes);
      return;
    }
  }
  pieces_.push_back({{address}, bytes});
}

uint64_t OuterStackRing::forget_before(uint64_t time_ns) {
  const auto first_kept = std::ranges::find_if(
      blocks_, [&](const Block& block) { return block.header.time_ns >= time_ns; });
  if (first_kept == blocks_.end()) {
    consumer_ = looked_at_;
  } else if (first_kept != blocks_.begin()) {
    consumer_ = std::prev(first_kept)->end;
  }
  blocks_.erase(blocks_.begin(), first_kept);
  return consumer_;
}

}  // namespace sentry_prof::sampling
