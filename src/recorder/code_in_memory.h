// Machine code that no file holds (JIT compilers', trampolines), read from the process that runs
// it.
#pragma once

#include "base/time_units.h"
#include "recorder/read_memory.h"
#include "unwind/code_source.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sentry_prof::recorder {

// One program's memory, as far as it is known to be the same: another map may hold other code.
struct AddressSpace {
  uint32_t pid = 0;
  uint64_t map_version = 0;  // unwind::ModuleMap::version()

  bool operator==(const AddressSpace&) const = default;
};

// Pages are kept for a while, as samples come back to the same code: 1 MiB at the most. What they
// held when the sample was taken is not known, so whoever reads them has to look at what they lead
// to. Of the recording thread.
class CodeInMemory final : public unwind::CodeSource {
 public:
  // Compilers may put other code to the same place, without a record that tells of it.
  static constexpr uint64_t kLongestUse_ns = kNsPerSecond;
  // Reading a page takes some 10 us (os::ProcessMemoryReader): at most 1 % of a CPU.
  static constexpr uint32_t kPagesPerSecond = 1000;

  // `read` may be empty: no code can be read.
  explicit CodeInMemory(ReadMemory read) : read_(std::move(read)) {}

  // Whose code is asked for from here on, and when it was running.
  void begin_sample(AddressSpace space, uint64_t time_ns) {
    space_ = space;
    time_ns_ = time_ns;
  }

  // Could not be read, or were one too many in a second.
  uint64_t pages_not_read() const { return pages_not_read_; }

  // By runtime address.
  [[nodiscard]] bool read_code(LinkAddress begin, std::span<std::byte> out) const override;

 private:
  static constexpr size_t kPage_bytes = 4096;
  static constexpr size_t kPages = 256;
  struct Page {
    AddressSpace space;
    uint64_t begin = 0;
    uint64_t time_ns = 0;   // of the sample that it was read for
    size_t size_bytes = 0;  // 0: it could not be read
    std::array<std::byte, kPage_bytes> bytes;
  };

  const Page* page_at(uint64_t begin) const;
  bool may_read() const;

  ReadMemory read_;
  AddressSpace space_;
  uint64_t time_ns_ = 0;
  // What is remembered, and no part of the answer.
  mutable std::array<std::unique_ptr<Page>, kPages> pages_;  // each address has one place
  mutable uint64_t second_begin_ns_ = 0;
  mutable uint32_t pages_in_second_ = 0;
  mutable uint64_t pages_not_read_ = 0;
};

}  // namespace sentry_prof::recorder
