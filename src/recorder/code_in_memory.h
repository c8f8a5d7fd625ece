// Machine code that no file holds (JIT compilers', trampolines), read from the process that runs
// it.
#pragma once

#include "base/per_second.h"
#include "base/time_units.h"
#include "recorder/read_memory.h"
#include "unwind/code_source.h"
#include "unwind/module_map.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace sentry_prof::recorder {

// Pages are kept for a while, as samples come back to the same code: 16 MiB at the most, where a
// process has so much of it (a run of javac makes 8). What they held when the sample was taken is
// not known, so whoever reads them has to look at what they lead to. Of the recording thread.
class CodeInMemory final : public unwind::CodeSource {
 public:
  // Compilers may put other code to the same place, without a record that tells of it, and do so
  // most where they have just done it: a page is used twice as long each time it was read again and
  // had not changed; up to the longest where no more may be read.
  static constexpr uint64_t kShortestUse_ns = kNsPerSecond / 50;
  static constexpr uint64_t kLongestUse_ns = kNsPerSecond;
  // What could not be read may have been asked of a reader without patience, or that found no CPU:
  // until then all stacks that come through it are cut. Each time takes one of the reads, so that
  // of hundreds of such pages the next ones wait for the next second.
  static constexpr uint64_t kRetry_ns = kNsPerSecond / 50;
  // A program that has ended had what was read last; of one that goes on that is believed for some
  // seconds, if its memory cannot be read any more.
  static constexpr uint64_t kLongestUnread_ns = 5 * kNsPerSecond;
  // A read takes some 10 us (os::ProcessMemoryReader), mostly for the turn of its thread: at most 2
  // % of a CPU, while code is compiled and sampled at a high rate.
  static constexpr uint32_t kReadsPerSecond = 2000;
  // A walk that fails may have come through code that was compiled since. Pages are read again for
  // it that have been used for this part of their time; 200 times a second, as a program may have
  // stacks of which none can be walked, and the second walk takes 30 us with its reads; with a
  // quarter of the reads, which new code needs more.
  static constexpr uint64_t kDoubtfulShare = 16;
  static constexpr uint32_t kDoubtsPerSecond = 200;
  static constexpr uint32_t kDoubtfulReadsPerSecond = kReadsPerSecond / 4;
  // So the pages around come with it: compilers put one function beside the other.
  static constexpr uint64_t kPagesOfRead = 4;

  explicit CodeInMemory(ReadMemory read) : read_(std::move(read)) {}

  // Whose code is asked for until the next sample, what of it is executable, and when it was
  // running. `modules` is not copied.
  void begin_sample(uint32_t pid, const unwind::ModuleMap& modules, uint64_t time_ns) {
    pid_ = pid;
    modules_ = &modules;
    time_ns_ = time_ns;
    old_pages_ = 0;
  }

  // Of the pages that were asked for since: whether some are not as new as they may be. They are
  // read anew then, if that many may be read.
  [[nodiscard]] bool doubt();

  // Another program runs there now, or none.
  void forget(uint32_t pid);

  // How often one was asked for that could not be read, or was one too many in a second.
  uint64_t pages_not_read() const { return pages_not_read_; }

  uint64_t address_space() const override { return pid_; }

  // By runtime address.
  [[nodiscard]] bool read_code(LinkAddress begin, std::span<std::byte> out) const override;

 private:
  static constexpr size_t kPage_bytes = 4096;
  static constexpr size_t kPages = 4096;
  // The kernel tells of a mapping anew, as a whole, whenever it grows (perf_event_mmap() of the
  // merged area), as compilers' do all the time: that says nothing of what is in it.
  struct PageId {
    uint32_t pid = 0;
    uint64_t begin = 0;
    bool operator==(const PageId&) const = default;
  };
  struct Page {
    PageId id;
    uint64_t time_ns = 0;  // of the sample that it was asked for last
    uint64_t use_ns = 0;
    uint64_t read_ns = 0;   // of the sample that it was read for
    size_t size_bytes = 0;  // 0: it could not be read
    bool is_doubtful = false;
    std::array<std::byte, kPage_bytes> bytes;
  };

  const Page* page_at(uint64_t begin) const;
  bool is_code(uint64_t begin) const { return modules_->find({begin}) != nullptr; }
  std::unique_ptr<Page>& place_of(const PageId& id) const;
  uint64_t age_ns(const Page& page) const { return time_ns_ - std::min(time_ns_, page.time_ns); }
  const Page* known(const PageId& id) const;
  bool is_fresh(const Page* page) const;
  bool may_read(const Page* page) const;
  bool is_old(const Page& page) const;
  void note_old(const PageId& id) const;
  bool is_usable(const Page* page) const;
  void read_around(const PageId& wanted) const;
  bool has_room_for(const PageId& id) const;
  void keep(std::unique_ptr<Page> page, bool is_wanted) const;

  ReadMemory read_;
  uint32_t pid_ = 0;
  const unwind::ModuleMap* modules_ = nullptr;
  uint64_t time_ns_ = 0;
  // What is remembered, and no part of the answer.
  mutable std::array<std::unique_ptr<Page>, kPages> pages_;  // each page has one place
  mutable bool has_pages_ = false;
  mutable PerSecond reads_{kReadsPerSecond};
  PerSecond doubts_{kDoubtsPerSecond};
  mutable PerSecond doubtful_reads_{kDoubtfulReadsPerSecond};
  // Of the sample. A walk comes through few pages; of more the first are read anew.
  mutable std::array<PageId, 32> old_ids_;
  mutable size_t old_pages_ = 0;
  mutable uint64_t pages_not_read_ = 0;
};

}  // namespace sentry_prof::recorder
