// Builds perf.data files byte by byte, right ones and wrong ones.
#pragma once

#include "base/byte_source.h"
#include "support/record_builder.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <linux/perf_event.h>
#include <zstd.h>

namespace sentry_prof::test {

inline void append(std::vector<std::byte>& to, const std::vector<std::byte>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

template <typename T>
void append_number(std::vector<std::byte>& to, T value) {
  const size_t at = to.size();
  to.resize(at + sizeof value);
  std::memcpy(to.data() + at, &value, sizeof value);
}

// One event that has what sentry-prof needs, laid out as record_builder.h builds records.
inline perf_event_attr stack_attr() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.freq = 1;
  attr.sample_freq = 997;
  attr.sample_type = kSampleType;
  attr.sample_regs_user = 1;
  attr.sample_stack_user = 8;
  attr.sample_id_all = 1;
  return attr;
}

class PerfDataBuilder {
 public:
  // `attr_bytes`: what the file keeps of it, which may be less or more than we know.
  PerfDataBuilder& event(const perf_event_attr& attr, std::vector<uint64_t> ids) {
    events_.push_back({attr, std::move(ids)});
    return *this;
  }
  PerfDataBuilder& attr_bytes(size_t bytes) {
    attr_bytes_ = bytes;
    return *this;
  }
  PerfDataBuilder& record(const std::vector<std::byte>& record) {
    append(data_, record);
    return *this;
  }
  PerfDataBuilder& feature(unsigned bit, std::vector<std::byte> bytes) {
    features_[bit / 64] |= uint64_t{1} << (bit % 64);
    feature_bytes_.push_back(std::move(bytes));
    return *this;
  }

  std::vector<std::byte> bytes() const {
    constexpr uint64_t kHeader_bytes = 104;
    std::vector<std::byte> ids, attrs;
    for (const auto& [attr, event_ids] : events_) {
      std::vector<std::byte> kept(attr_bytes_);
      std::memcpy(kept.data(), &attr, std::min(sizeof attr, attr_bytes_));
      append(attrs, kept);
      append_number<uint64_t>(attrs, kHeader_bytes + ids.size());
      append_number<uint64_t>(attrs, 8 * event_ids.size());
      for (const uint64_t id : event_ids) append_number(ids, id);
    }
    const uint64_t attrs_begin = kHeader_bytes + ids.size();
    const uint64_t data_begin = attrs_begin + attrs.size();
    std::vector<std::byte> file = bytes_of("PERFILE2");
    for (const uint64_t word :
         {kHeader_bytes, uint64_t{attr_bytes_ + 16}, attrs_begin, uint64_t{attrs.size()},
          data_begin, uint64_t{data_.size()}, uint64_t{0}, uint64_t{0}, features_[0], features_[1],
          features_[2], features_[3]}) {
      append_number(file, word);
    }
    append(file, ids);
    append(file, attrs);
    append(file, data_);
    uint64_t place = file.size() + 16 * feature_bytes_.size();
    for (const auto& feature : feature_bytes_) {
      append_number(file, place);
      append_number<uint64_t>(file, feature.size());
      place += feature.size();
    }
    for (const auto& feature : feature_bytes_) append(file, feature);
    return file;
  }
  MemoryByteSource file() const { return MemoryByteSource(bytes()); }

 private:
  std::vector<std::pair<perf_event_attr, std::vector<uint64_t>>> events_;
  size_t attr_bytes_ = sizeof(perf_event_attr);
  std::vector<std::byte> data_;
  std::array<uint64_t, 4> features_{};
  std::vector<std::vector<std::byte>> feature_bytes_;  // in the order of their bits
};

inline PerfDataBuilder one_event() { return PerfDataBuilder().event(stack_attr(), {5}); }

// A sample that the event of stack_attr() wrote.
inline std::vector<std::byte> stack_sample(uint64_t id, uint32_t tid, uint64_t time_ns) {
  return RecordBuilder(PERF_RECORD_SAMPLE)
      .sample_head(id, tid, tid, time_ns, 0)
      .u64(PERF_SAMPLE_REGS_ABI_64)
      .u64(0x1000)
      .u64(8)
      .u64(0x2000)
      .u64(8)
      .build();
}

// As of a thread of the kernel, which has no user state.
inline std::vector<std::byte> kernel_sample(uint64_t id, uint32_t tid, uint64_t time_ns) {
  return RecordBuilder(PERF_RECORD_SAMPLE)
      .sample_head(id, tid, tid, time_ns, 0)
      .u64(PERF_SAMPLE_REGS_ABI_NONE)
      .u64(0)
      .build();
}

inline std::vector<std::byte> comm(uint64_t id, uint32_t tid, uint64_t time_ns,
                                   std::string_view name) {
  return RecordBuilder(PERF_RECORD_COMM)
      .u32(tid)
      .u32(tid)
      .string(name)
      .trailer(tid, tid, time_ns, 0, id)
      .build();
}

inline std::vector<std::byte> finished_round() { return RecordBuilder(68).build(); }

// What perf record -z makes of some bytes: one stream, flushed after each record.
class Compressor {
 public:
  Compressor() : stream_(ZSTD_createCStream()) {}
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  ~Compressor() { ZSTD_freeCStream(stream_); }

  std::vector<std::byte> record(const std::vector<std::byte>& bytes) {
    std::vector<std::byte> out(ZSTD_compressBound(bytes.size()) + 64);
    ZSTD_inBuffer from{bytes.data(), bytes.size(), 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    ZSTD_compressStream2(stream_, &to, &from, ZSTD_e_flush);
    return RecordBuilder(81).raw({reinterpret_cast<const char*>(out.data()), to.pos}).build();
  }

 private:
  ZSTD_CStream* stream_;
};

}  // namespace sentry_prof::test
