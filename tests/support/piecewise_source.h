// A file that is read in pieces, and how it is.
#pragma once

#include "base/byte_source.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace sentry_prof::test {

class PiecewiseSource final : public ByteSource {
 public:
  explicit PiecewiseSource(std::vector<std::byte> file) : bytes(std::move(file)) {}

  uint64_t size_bytes() const override { return bytes.size(); }
  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override {
    ++reads;
    if (offset > readable_bytes || out.size() > readable_bytes - offset) return false;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    read_bytes += out.size();
    return true;
  }
  bool will_be_read_in_pieces(uint64_t, uint64_t) const override { return true; }

  std::vector<std::byte> bytes;
  uint64_t readable_bytes = bytes.size();  // what is behind them was truncated away meanwhile
  mutable std::atomic<uint64_t> reads = 0;
  mutable std::atomic<uint64_t> read_bytes = 0;
};

}  // namespace sentry_prof::test
