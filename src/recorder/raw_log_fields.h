// The fields of each entry of a raw log, listed once for writing and reading.
#pragma once

#include "recorder/raw_log.h"

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sentry_prof::recorder {

template <typename T>
concept RawNumber = std::integral<T> || std::is_enum_v<T>;

class FieldWriter {
 public:
  static constexpr bool kReads = false;

  template <RawNumber T>
  void operator()(const T& value) {
    auto rest = static_cast<uint64_t>(value);
    for (size_t i = 0; i < sizeof(T); ++i, rest >>= 8) bytes_ += static_cast<char>(rest & 0xff);
  }
  void operator()(const std::string& text) {
    count(text.size());
    bytes_ += text;
  }
  void operator()(const std::vector<std::byte>& bytes) { (*this)(to_text(bytes)); }
  void rest(Bytes bytes) { bytes_ += to_text(bytes); }
  void count(size_t value) { (*this)(static_cast<uint32_t>(value)); }

  std::string take() { return std::move(bytes_); }

 private:
  static std::string to_text(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string bytes_;
};

class FieldReader {
 public:
  static constexpr bool kReads = true;
  explicit FieldReader(Bytes bytes) : in_(bytes) {}

  template <RawNumber T>
  void operator()(T& value) {
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof(T); ++i) number |= uint64_t{in_.u8()} << (8 * i);
    if constexpr (std::is_same_v<T, bool>) {
      if (number > 1) in_.set_failed();
      value = number == 1;
    } else {
      value = static_cast<T>(number);
    }
  }
  void operator()(std::string& text) {
    const Bytes bytes = counted();
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void operator()(std::vector<std::byte>& out) {
    const Bytes bytes = counted();
    out.assign(bytes.begin(), bytes.end());
  }
  Bytes rest() { return in_.bytes(in_.remaining()); }
  // A number of items of at least `item_bytes` each that still have room.
  uint32_t count(size_t item_bytes) {
    const uint32_t value = in_.u32();
    if (value <= in_.remaining() / item_bytes) return value;
    in_.set_failed();
    return 0;
  }
  void fail_unless(bool holds) {
    if (!holds) in_.set_failed();
  }
  bool ok() const { return in_.ok(); }
  bool is_done() const { return in_.ok() && in_.at_end(); }

 private:
  Bytes counted() { return in_.bytes(in_.u32()); }
  ByteReader in_;
};

template <typename Fields>
void describe(Fields& f, RuntimeAddress& address) {
  f(address.value);
}

template <typename Fields>
void describe(Fields& f, sampling::SamplerSetup& s) {
  f(s.event_name), f(s.fell_back_to_cpu_clock), f(s.kernel_excluded), f(s.has_switches);
  f(s.counts_lost_samples), f(s.stack_bytes), f(s.ring_bytes_per_cpu), f(s.cpus),
      f(s.threads_attached);
  f(s.sample_type), f(s.register_mask);
}

template <typename Fields>
void describe(Fields& f, sampling::SamplerStats& s) {
  f(s.records), f(s.lost_samples), f(s.lost_records), f(s.cpus_not_sampled), f(s.wakeups);
}

template <typename Fields>
void describe(Fields& f, RawEnd& e) {
  f(e.time_ns), describe(f, e.stats);
}

template <typename Fields>
void describe(Fields& f, Session& s) {
  f(s.platform), f(s.release), f(s.environment), f(s.transaction_name), f(s.sdk_name);
  f(s.sdk_version), f(s.os_name), f(s.os_version), f(s.os_build), f(s.device_architecture);
  f(s.device_manufacturer), f(s.device_model);
}

template <typename Fields>
void describe(Fields& f, RawSession& s) {
  f(s.arch), f(s.has_trailer), describe(f, s.setup), f(s.frequency_hz), f(s.chunk_ns);
  f(s.max_chunk_json_bytes), f(s.begin_ns), f(s.clock.monotonic_ns), f(s.clock.unix_ns);
  f(s.main_pid), f(s.main_executable), describe(f, s.texts);
}

template <typename Fields>
void describe(Fields& f, target::MappingFacts& m) {
  f(m.pid), describe(f, m.begin), f(m.size_bytes), f(m.file_offset), f(m.build_id);
  f(m.device_major), f(m.device_minor), f(m.inode), f(m.path);
}

template <typename Fields>
void describe(Fields& f, std::pair<uint32_t, std::string>& thread) {
  f(thread.first), f(thread.second);
}

// No item is smaller than a thread of eight bytes.
template <typename Fields, typename Item>
void describe(Fields& f, std::vector<Item>& items) {
  if constexpr (Fields::kReads) {
    const uint32_t count = f.count(8);
    for (uint32_t i = 0; i < count && f.ok(); ++i) describe(f, items.emplace_back());
  } else {
    f.count(items.size());
    for (Item& item : items) describe(f, item);
  }
}

template <typename Fields>
void describe(Fields& f, target::ProcessSnapshot& s) {
  f(s.pid), f(s.name), describe(f, s.threads), describe(f, s.mappings);
  f(s.taken_at_ns);
}

template <typename Fields>
void describe(Fields& f, Error& error) {
  f(error.code), f(error.message);
}

template <typename Fields>
void describe(Fields& f, RawAnswer& a) {
  f(a.is_yes), f(a.file_number), f(a.file_bytes), describe(f, a.error);
}

}  // namespace sentry_prof::recorder
