#include "recorder/code_in_memory.h"

#include "support/catch2.h"

#include <map>
#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::recorder;

namespace {

constexpr uint64_t kPage = 0x7f0000001000;
constexpr size_t kPage_bytes = 4096;
constexpr size_t kMapped_bytes = kPage_bytes * 2 * CodeInMemory::kPagesPerSecond;
constexpr uint32_t kProcess = 100;

// Processes' memory, a page filled with one byte each.
struct Memory {
  CodeInMemory code{[this](const MemoryRequest& request, std::span<os::MemoryRange> ranges) {
    ++reads;
    last_pid = request.pid;
    REQUIRE(ranges.size() == 1);
    const auto page = pages.find(ranges[0].address);
    if (page == pages.end()) return request.sample_time_ns;
    std::ranges::fill(ranges[0].out, std::byte{page->second});
    ranges[0].got_bytes = ranges[0].out.size();
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

TEST_CASE("a page of code is read once, then again after a second") {
  Memory memory;
  memory.pages[kPage] = 1;
  memory.sample(5 * kNsPerSecond);
  CHECK(memory.at(kPage + 8) == Values{1, 1});
  CHECK(memory.last_pid == kProcess);
  memory.pages[kPage] = 2;
  memory.sample(6 * kNsPerSecond - 1);
  CHECK(memory.at(kPage + 16) == Values{1, 1});
  CHECK(memory.reads == 1);
  memory.sample(6 * kNsPerSecond);
  CHECK(memory.at(kPage + 8) == Values{2, 2});
  CHECK(memory.reads == 2);
}

TEST_CASE("another process, and another map of the same, may have other code") {
  Memory memory;
  memory.pages[kPage] = 1;
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  memory.pages[kPage] = 2;
  memory.sample(kNsPerSecond, kProcess + 1);
  CHECK(memory.at(kPage) == Values{2, 2});
  memory.pages[kPage] = 3;
  memory.modules.insert({{0x1000}, {0x2000}, {}, unwind::kNoImage});
  memory.sample(kNsPerSecond, kProcess + 1);
  CHECK(memory.at(kPage) == Values{3, 3});
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

TEST_CASE("a page that is old, and may not be read again, is not believed") {
  Memory memory;
  memory.pages[kPage] = 1;
  memory.sample(kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  memory.sample(2 * kNsPerSecond);
  for (uint64_t i = 1; i <= CodeInMemory::kPagesPerSecond; ++i) memory.at(kPage + i * kPage_bytes);
  CHECK(memory.at(kPage).empty());
}

TEST_CASE("no more pages are read in a second than a hundredth of it allows") {
  Memory memory;
  const auto ask_for_many = [&](uint64_t time_ns) {
    memory.sample(time_ns);
    for (uint64_t i = 0; i < 2 * CodeInMemory::kPagesPerSecond; ++i) {
      CHECK(memory.at(kPage + i * kPage_bytes).empty());
    }
  };
  ask_for_many(kNsPerSecond);
  CHECK(memory.reads == CodeInMemory::kPagesPerSecond);
  CHECK(memory.code.pages_not_read() == 2 * CodeInMemory::kPagesPerSecond);
  ask_for_many(2 * kNsPerSecond);
  CHECK(memory.reads == 2 * CodeInMemory::kPagesPerSecond);
}
