// Machine code that no file holds (JIT compilers', trampolines), read from the process that runs
// it.
#pragma once

#include "base/per_second.h"
#include "base/time_units.h"
#include "recorder/read_memory.h"
#include "unwind/code_source.h"
#include "unwind/module_map.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace sentry_prof::recorder {

// Pages are kept for a while, as samples come back to the same code: 1 MiB at the most. What they
// held when the sample was taken is not known, so whoever reads them has to look at what they lead
// to. Of the recording thread.
class CodeInMemory final : public unwind::CodeSource {
 public:
  // Compilers may put other code to the same place, without a record that tells of it.
  static constexpr uint64_t kLongestUse_ns = kNsPerSecond;
  // What could not be read may have been asked for too late, or of a reader without patience.
  static constexpr uint64_t kRetry_ns = kNsPerSecond / 10;
  // Reading a page takes some 10 us (os::ProcessMemoryReader): at most 1 % of a CPU.
  static constexpr uint32_t kPagesPerSecond = 1000;

  explicit CodeInMemory(ReadMemory read) : read_(std::move(read)) {}

  // Whose code is asked for until the next sample, what of it is executable, and when it was
  // running. `modules` is not copied.
  void begin_sample(uint32_t pid, const unwind::ModuleMap& modules, uint64_t time_ns) {
    program_ = {pid, modules.version()};
    modules_ = &modules;
    time_ns_ = time_ns;
  }

  // How often one was asked for that could not be read, or was one too many in a second.
  uint64_t pages_not_read() const { return pages_not_read_; }

  // By runtime address.
  [[nodiscard]] bool read_code(LinkAddress begin, std::span<std::byte> out) const override;

 private:
  static constexpr size_t kPage_bytes = 4096;
  static constexpr size_t kPages = 256;
  // Another map may hold other code at the same place.
  struct Program {
    uint32_t pid = 0;
    uint64_t map_version = 0;
    bool operator==(const Program&) const = default;
  };
  struct Page {
    Program program;
    uint64_t begin = 0;
    uint64_t time_ns = 0;   // of the sample that it was read for
    size_t size_bytes = 0;  // 0: it could not be read
    std::array<std::byte, kPage_bytes> bytes;
  };

  const Page* page_at(uint64_t begin) const;
  bool is_fresh(const Page& page) const;
  std::unique_ptr<Page> read_page(uint64_t begin) const;

  ReadMemory read_;
  Program program_;
  const unwind::ModuleMap* modules_ = nullptr;
  uint64_t time_ns_ = 0;
  // What is remembered, and no part of the answer.
  mutable std::array<std::unique_ptr<Page>, kPages> pages_;  // each page has one place
  mutable PerSecond reads_{kPagesPerSecond};
  mutable uint64_t pages_not_read_ = 0;
};

}  // namespace sentry_prof::recorder
