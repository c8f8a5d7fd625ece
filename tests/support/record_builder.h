// Builds kernel records byte by byte, right ones and wrong ones, and rings of them.
#pragma once

#include "base/byte_reader.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include <linux/perf_event.h>

namespace sentry_prof::test {

// The sample_type that sentry-prof asks for.
constexpr uint64_t kSampleType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                 PERF_SAMPLE_CPU | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

class RecordBuilder {
 public:
  explicit RecordBuilder(uint32_t type, uint16_t misc = 0) {
    u32(type);
    u16(misc);
    u16(0);  // size, by build()
  }

  RecordBuilder& u8(uint8_t value) { return put(value); }
  RecordBuilder& u16(uint16_t value) { return put(value); }
  RecordBuilder& u32(uint32_t value) { return put(value); }
  RecordBuilder& u64(uint64_t value) { return put(value); }
  RecordBuilder& zeros(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  // With its NUL, padded to eight bytes as the kernel does.
  RecordBuilder& string(std::string_view text) {
    raw(text);
    return zeros(8 - bytes_.size() % 8);
  }
  RecordBuilder& raw(std::string_view text) {
    for (char c : text) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  // The fixed fields of a sample, in the order of kSampleType.
  RecordBuilder& sample_head(uint64_t id, uint32_t pid, uint32_t tid, uint64_t time_ns,
                             uint32_t cpu) {
    return u64(id).u32(pid).u32(tid).u64(time_ns).u32(cpu).u32(0);
  }
  // The trailer of the others.
  RecordBuilder& trailer(uint32_t pid, uint32_t tid, uint64_t time_ns, uint32_t cpu, uint64_t id) {
    return u32(pid).u32(tid).u64(time_ns).u32(cpu).u32(0).u64(id);
  }

  std::vector<std::byte> build() const {
    return build_with_size(static_cast<uint16_t>(bytes_.size()));
  }
  // With a size in the header that need not be true.
  std::vector<std::byte> build_with_size(uint16_t size_bytes) const {
    std::vector<std::byte> record = bytes_;
    std::byte raw[2];
    std::memcpy(raw, &size_bytes, sizeof raw);
    record.at(6) = raw[0];
    record.at(7) = raw[1];
    return record;
  }

 private:
  template <typename T>
  RecordBuilder& put(T value) {
    std::byte raw[sizeof value];
    std::memcpy(raw, &value, sizeof raw);
    for (std::byte byte : raw) bytes_.push_back(byte);  // insert() makes g++ 12 warn, for nothing
    return *this;
  }

  std::vector<std::byte> bytes_;
};

// A ring that a kernel would have filled: records appended at the head, over the end and again from
// the front.
class RingBuilder {
 public:
  explicit RingBuilder(size_t size_bytes, uint64_t start = 0)
      : bytes_(size_bytes), tail_(start), head_(start) {}

  RingBuilder& append(const std::vector<std::byte>& record) {
    for (std::byte byte : record) bytes_[head_++ % bytes_.size()] = byte;
    return *this;
  }
  Bytes bytes() const { return bytes_; }
  uint64_t tail() const { return tail_; }
  uint64_t head() const { return head_; }

 private:
  std::vector<std::byte> bytes_;
  uint64_t tail_, head_;
};

}  // namespace sentry_prof::test
