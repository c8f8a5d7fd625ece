// A source of bytes of which some are wanted later, when it may be gone.
#pragma once

#include "base/byte_source.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sentry_prof::target {

// What all copies of a session may take: .dynsym and its names have 4 MiB in libLLVM, and less than
// 100 KiB in most libraries. Copies may end on any thread.
struct CopyBudget {
  std::atomic<uint64_t> bytes_left = uint64_t{32} << 20;
};

class PartlyCopied final : public ByteSource {
 public:
  PartlyCopied(std::shared_ptr<const ByteSource> source, std::shared_ptr<CopyBudget> budget)
      : source_(std::move(source)), budget_(std::move(budget)) {}
  PartlyCopied(const PartlyCopied&) = delete;
  PartlyCopied& operator=(const PartlyCopied&) = delete;
  ~PartlyCopied() override;

  // Before others read. Of what cannot be read now, or is beyond the budget, there is no copy.
  void copy(uint64_t offset, uint64_t size_bytes);

  uint64_t size_bytes() const override { return source_->size_bytes(); }
  // Out of a copy that has all of it, else from the source.
  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override;
  bool will_be_read_in_pieces(uint64_t offset, uint64_t size_bytes) const override {
    return source_->will_be_read_in_pieces(offset, size_bytes);
  }
  bool was_silent() const override { return source_->was_silent(); }
  bool is_unchanged() const override { return source_->is_unchanged(); }
  bool was_changed() const override { return source_->was_changed(); }

 private:
  struct Copy {
    uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };

  std::shared_ptr<const ByteSource> source_;
  std::shared_ptr<CopyBudget> budget_;
  std::vector<Copy> copies_;
};

}  // namespace sentry_prof::target
