#include "recorder/code_in_memory.h"

#include "support/catch2.h"

#include <map>
#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::recorder;

namespace {

constexpr uint64_t kPage = 0x7f0000000000;
constexpr size_t kPage_bytes = 4096;
constexpr uint64_t kRead_bytes = kPage_bytes * CodeInMemory::kPagesOfRead;
constexpr size_t kMapped_bytes = kRead_bytes * 2 * CodeInMemory::kReadsPerSecond;
constexpr uint32_t kProcess = 100;

// Processes' memory, a page filled with one byte each.
struct Memory {
  CodeInMemory code{[this](const MemoryRequest& request, std::span<os::MemoryRange> ranges) {
    ++reads;
    last_pid = request.pid;
    REQUIRE(request.kind == MemoryKind::Code);
    REQUIRE(ranges.size() <= CodeInMemory::kPagesOfRead);
    for (os::MemoryRange& range : ranges) {
      const auto page = pages.find(range.address);
      if (page == pages.end()) continue;
      std::ranges::fill(range.out, std::byte{page->second});
      range.got_bytes = range.out.size();
    }
    return request.sample_time_ns;
  }};
  unwind::ModuleMap modules;
  std::map<uint64_t, uint8_t> pages;
  int reads = 0;
  uint32_t last_pid = 0;

  Memory() { modules.insert({{kPage}, {kPage + kMapped_bytes}, {}, unwind::kNoImage}); }

  void sample(uint64_t time_ns, uint32_t pid = kProcess) {
    code.begin_sample(pid, modules, time_ns);
  }

  // The bytes there; none if they cannot be read.
  std::vector<int> at(uint64_t address, size_t count = 2) const {
    std::vector<std::byte> bytes(count);
    if (!code.read_code({address}, bytes)) return {};
    std::vector<int> result;
    for (const std::byte byte : bytes) result.push_back(std::to_integer<int>(byte));
    return result;
  }
};

using Values = std::vector<int>;

}  // namespace

TEST_CASE("memory is read for a sample that waited long if it is code, and not if it is a stack") {
  const MemoryRequest stack{kProcess, kNsPerSecond};
  CHECK_FALSE(is_too_late(stack, kNsPerSecond - 1));
  CHECK_FALSE(is_too_late(stack, kNsPerSecond + kLatestStackRead_ns));
  CHECK(is_too_late(stack, kNsPerSecond + kLatestStackRead_ns + 1));
  const MemoryRequest code{kProcess, kNsPerSecond, MemoryKind::Code};
  CHECK_FALSE(is_too_late(code, 100 * kNsPerSecond));
}

TEST_CASE(
    "a page of code is used twice as long each time that it has not changed, up to a second") {
  Memory memory;
  memory.pages[kPage] = 1;
  uint64_t now_ns = 5 * kNsPerSecond;
  uint64_t use_ns = CodeInMemory::kShortestUse_ns;
  for (int reads = 1; reads < 12; ++reads) {
    memory.sample(now_ns);
    CHECK(memory.at(kPage + 8) == Values{1, 1});
    memory.sample(now_ns + use_ns - 1);
    CHECK(memory.at(kPage + 16) == Values{1, 1});
    CHECK(memory.reads == reads);
    now_ns += use_ns;
    use_ns = std::min(2 * use_ns, CodeInMemory::kLongestUse_ns);
  }
  CHECK(use_ns == CodeInMemory::kLongestUse_ns);
  CHECK(memory.last_pid == kProcess);
  memory.pages[kPage] = 2;
  memory.sample(now_ns);
  CHECK(memory.at(kPage + 8) == Values{2, 2});
  memory.pages[kPage] = 3;
  memory.sample(now_ns + CodeInMemory::kShortestUse_ns);
  CHECK(memory.at(kPage + 8) == Values{3, 3});
}

TEST_CASE("another process may have other code") {
  Memory memory;
  memory.pages[kPage] = 1;
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  memory.pages[kPage] = 2;
  memory.sample(kNsPerSecond, kProcess + 1);
  CHECK(memory.at(kPage) == Values{2, 2});
}

TEST_CASE("the next program of a process may have other code, too") {
  Memory memory;
  memory.pages[kPage] = 1;
  for (const uint32_t pid : {kProcess, kProcess + 1}) {
    memory.sample(kNsPerSecond, pid);
    CHECK(memory.at(kPage) == Values{1, 1});
  }
  memory.code.forget(kProcess);
  memory.pages[kPage] = 2;
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage) == Values{2, 2});
  memory.sample(kNsPerSecond, kProcess + 1);
  CHECK(memory.at(kPage) == Values{1, 1});
}

// The kernel tells anew of a mapping that grows.
TEST_CASE("a change of the map is none of the code") {
  Memory memory;
  memory.pages[kPage] = 1;
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  memory.modules.insert({{kPage}, {kPage + kMapped_bytes + kPage_bytes}, {}, unwind::kNoImage});
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  CHECK(memory.reads == 1);
}

TEST_CASE("the pages around are read with a page, where they are code") {
  Memory memory;
  for (uint64_t i = 0; i < 8; ++i) memory.pages[kPage + i * kPage_bytes] = static_cast<uint8_t>(i);
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage + 2 * kPage_bytes) == Values{2, 2});
  for (const int i : {0, 1, 3}) CHECK(memory.at(kPage + kPage_bytes * uint64_t(i)) == Values{i, i});
  CHECK(memory.reads == 1);
  CHECK(memory.at(kPage + kRead_bytes) == Values{4, 4});
  CHECK(memory.reads == 2);
  CHECK(memory.code.pages_not_read() == 0);
}

TEST_CASE("a page that only came with others is used as shortly as at first") {
  Memory memory;
  constexpr uint64_t kNext = kPage + kPage_bytes;
  memory.pages = {{kPage, 1}, {kNext, 0}};
  uint64_t now_ns = kNsPerSecond;
  for (uint64_t i = 0; i < 8; ++i, now_ns += kNsPerSecond) {
    memory.sample(now_ns);
    CHECK(memory.at(kPage) == Values{1, 1});
  }
  now_ns -= kNsPerSecond - CodeInMemory::kShortestUse_ns;
  memory.pages[kNext] = 2;
  memory.sample(now_ns);
  CHECK(memory.at(kNext) == Values{2, 2});
}

TEST_CASE("forked processes with code at the same place do not push each other out") {
  Memory memory;
  memory.pages[kPage] = 1;
  for (uint64_t round = 0; round < 10; ++round) {
    for (uint32_t child = 0; child < 8; ++child) {
      memory.sample(kNsPerSecond + round, kProcess + child);
      CHECK(memory.at(kPage) == Values{1, 1});
    }
  }
  CHECK(memory.reads == 8);
}

TEST_CASE("a page that comes with another takes no place of one that is in use") {
  Memory memory;
  constexpr uint64_t kCacheWhole_bytes = 16u << 20;
  for (const uint64_t begin : {kPage, kPage + kCacheWhole_bytes}) {
    memory.pages[begin] = 1;
    memory.pages[begin + kPage_bytes] = 2;
  }
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  CHECK(memory.at(kPage + kCacheWhole_bytes + kPage_bytes) == Values{2, 2});
  CHECK(memory.reads == 2);
  CHECK(memory.at(kPage) == Values{1, 1});
  CHECK(memory.reads == 2);
}

TEST_CASE("what is not executable is not read, nor counted") {
  Memory memory;
  memory.pages[kPage - kPage_bytes] = 1;
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage - kPage_bytes).empty());
  CHECK(memory.reads == 0);
  CHECK(memory.code.pages_not_read() == 0);
}

TEST_CASE("code goes on from page to page, as far as there are any") {
  Memory memory;
  memory.pages = {{kPage, 1}, {kPage + kPage_bytes, 2}};
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage + kPage_bytes - 1) == Values{1, 2});
  CHECK(memory.at(kPage + 2 * kPage_bytes - 1).empty());
  CHECK(memory.at(kPage + 2 * kPage_bytes - 1, 1) == Values{2});
  CHECK(memory.at(UINT64_MAX).empty());
}

TEST_CASE("what cannot be read is asked for again a little later") {
  Memory memory;
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage).empty());
  CHECK(memory.at(kPage).empty());
  CHECK(memory.reads == 1);
  CHECK(memory.code.pages_not_read() == 1);
  memory.pages[kPage] = 1;
  memory.sample(kNsPerSecond + CodeInMemory::kRetry_ns);
  CHECK(memory.at(kPage) == Values{1, 1});
}

TEST_CASE("the code of a program that has ended is what was read last") {
  Memory memory;
  memory.pages[kPage] = 1;
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  memory.pages.clear();
  memory.sample(3 * kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  CHECK(memory.at(kPage) == Values{1, 1});
  CHECK(memory.reads == 2);
}

TEST_CASE("a page that cannot be read again is not believed for ever") {
  Memory memory;
  memory.pages[kPage] = 1;
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  memory.pages.clear();
  memory.sample(kNsPerSecond + CodeInMemory::kLongestUnread_ns);
  CHECK(memory.at(kPage) == Values{1, 1});
  memory.sample(2 * kNsPerSecond + CodeInMemory::kLongestUnread_ns);
  CHECK(memory.at(kPage).empty());
}

TEST_CASE("a page that could not be read again is soon asked for again") {
  Memory memory;
  memory.pages[kPage] = 1;
  uint64_t now_ns = kNsPerSecond;
  for (int i = 0; i < 8; ++i, now_ns += kNsPerSecond) {
    memory.sample(now_ns);
    CHECK(memory.at(kPage) == Values{1, 1});
  }
  memory.pages.clear();
  memory.sample(now_ns);
  CHECK(memory.at(kPage) == Values{1, 1});
  memory.pages[kPage] = 2;
  memory.sample(now_ns + CodeInMemory::kRetry_ns);
  CHECK(memory.at(kPage) == Values{2, 2});
}

TEST_CASE("a page that may not be read again is used for a second, and not believed behind it") {
  Memory memory;
  memory.pages[kPage] = 1;
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  const auto use_all_reads = [&](uint64_t time_ns) {
    memory.sample(time_ns);
    // Not in that page's place.
    const uint64_t begin = kPage + kPage_bytes;
    for (uint64_t i = 1; i <= CodeInMemory::kReadsPerSecond; ++i)
      memory.at(begin + i * kRead_bytes);
  };
  use_all_reads(2 * kNsPerSecond - 1);
  CHECK(memory.at(kPage) == Values{1, 1});
  use_all_reads(4 * kNsPerSecond);
  CHECK(memory.at(kPage).empty());
}

TEST_CASE("what a walk failed with is read anew, unless it is as new as can be") {
  constexpr uint64_t kDoubtful_ns = CodeInMemory::kShortestUse_ns / CodeInMemory::kDoubtfulShare;
  Memory memory;
  memory.sample(kNsPerSecond);
  CHECK_FALSE(memory.code.doubt());  // nothing was asked for
  memory.pages[kPage] = 1;
  CHECK(memory.at(kPage) == Values{1, 1});
  CHECK_FALSE(memory.code.doubt());
  memory.pages[kPage] = 2;
  memory.sample(kNsPerSecond + kDoubtful_ns - 1);
  CHECK(memory.at(kPage) == Values{1, 1});
  CHECK_FALSE(memory.code.doubt());
  memory.sample(kNsPerSecond + kDoubtful_ns);
  CHECK(memory.at(kPage) == Values{1, 1});
  CHECK(memory.code.doubt());
  CHECK(memory.at(kPage) == Values{2, 2});
  CHECK_FALSE(memory.code.doubt());
  CHECK(memory.reads == 2);
}

TEST_CASE("what is doubted for nothing is doubted more and more seldom") {
  Memory memory;
  memory.pages[kPage] = 1;
  for (uint64_t now_ns = kNsPerSecond; now_ns < 6 * kNsPerSecond; now_ns += kNsPerSecond / 1000) {
    memory.sample(now_ns);
    memory.at(kPage);
    if (memory.code.doubt()) memory.at(kPage);
  }
  constexpr auto kMost = static_cast<int>(5 * CodeInMemory::kDoubtfulShare);  // of a second each
  CHECK(memory.reads > kMost / 2);
  CHECK(memory.reads < kMost + 10);
}

TEST_CASE("what is doubted and cannot be read any more is believed as before") {
  Memory memory;
  memory.pages[kPage] = 1;
  memory.sample(kNsPerSecond);
  memory.at(kPage);
  memory.pages.clear();
  memory.sample(kNsPerSecond + CodeInMemory::kShortestUse_ns / 2);
  memory.at(kPage);
  CHECK(memory.code.doubt());
  CHECK(memory.at(kPage) == Values{1, 1});
  CHECK(memory.at(kPage) == Values{1, 1});
  CHECK(memory.reads == 2);
}

TEST_CASE("a program that compiles all the time has its code doubted 200 times a second") {
  Memory memory;
  uint32_t doubts = 0;
  for (uint64_t i = 0; i < 2 * CodeInMemory::kDoubtsPerSecond; ++i) {
    memory.pages[kPage] = static_cast<uint8_t>(i);
    memory.sample(kNsPerSecond + i * kNsPerSecond / 500);
    memory.at(kPage);
    if (!memory.code.doubt()) continue;
    ++doubts;
    CHECK(memory.at(kPage)[0] == memory.pages[kPage]);
  }
  CHECK(doubts == CodeInMemory::kDoubtsPerSecond);
}

TEST_CASE("more pages than are doubted at once") {
  Memory memory;
  constexpr uint64_t kManyPages = 100;
  const auto ask_for_all = [&] {
    for (uint64_t i = 0; i < kManyPages; ++i) memory.at(kPage + i * kRead_bytes);
  };
  for (uint64_t i = 0; i < kManyPages; ++i) memory.pages[kPage + i * kRead_bytes] = 1;
  memory.sample(kNsPerSecond);
  ask_for_all();
  memory.sample(kNsPerSecond + CodeInMemory::kShortestUse_ns / 2);
  ask_for_all();
  CHECK(memory.code.doubt());
  ask_for_all();
  CHECK(memory.reads == kManyPages + 32);
}

TEST_CASE("what is doubted leaves reads for new code") {
  Memory memory;
  constexpr uint64_t kOldPages = 400;
  const auto ask_for = [&](uint64_t page) { return memory.at(kPage + page * kRead_bytes); };
  for (uint64_t page = 0; page < kOldPages; ++page) memory.pages[kPage + page * kRead_bytes] = 1;
  uint64_t now_ns = kNsPerSecond;
  for (; now_ns < 10 * kNsPerSecond; now_ns += kNsPerSecond / 10) {
    memory.sample(now_ns);
    for (uint64_t page = 0; page < kOldPages; ++page) ask_for(page);
  }
  // Each walk comes through 20 of them and two new ones, and fails.
  uint64_t next_new = kOldPages;
  for (uint64_t i = 0; i < 500; ++i, now_ns += kNsPerSecond / 500) {
    memory.sample(now_ns);
    const auto walk = [&] {
      for (uint64_t page = 0; page < 20; ++page) ask_for((20 * i + page) % kOldPages);
    };
    walk();
    if (memory.code.doubt()) walk();
    for (int page = 0; page < 2; ++page, ++next_new) {
      memory.pages[kPage + next_new * kRead_bytes] = 1;
      CHECK(ask_for(next_new) == Values{1, 1});
    }
  }
}

TEST_CASE("no more is read in a second than a small part of it allows") {
  Memory memory;
  const auto ask_for_many = [&](uint64_t time_ns) {
    memory.sample(time_ns);
    for (uint64_t i = 0; i < 2 * CodeInMemory::kReadsPerSecond; ++i) {
      CHECK(memory.at(kPage + i * kRead_bytes).empty());
    }
  };
  ask_for_many(kNsPerSecond);
  CHECK(memory.reads == CodeInMemory::kReadsPerSecond);
  CHECK(memory.code.pages_not_read() == 2 * CodeInMemory::kReadsPerSecond);
  ask_for_many(2 * kNsPerSecond);
  CHECK(memory.reads == 2 * CodeInMemory::kReadsPerSecond);
}
