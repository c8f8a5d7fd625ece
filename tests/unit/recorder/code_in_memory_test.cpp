#include "recorder/code_in_memory.h"

#include "support/catch2.h"

#include <map>
#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::recorder;

namespace {

constexpr uint64_t kPage = 0x7f0000001000;
constexpr size_t kPage_bytes = 4096;
constexpr AddressSpace kProgram{100, 1};

// Processes' memory, a page filled with one byte each.
struct Memory {
  CodeInMemory code{[this](const MemoryRequest& request, std::span<std::byte> out) -> MemoryRead {
    ++reads;
    last_pid = request.pid;
    const auto page = pages.find(request.address.value);
    if (page == pages.end()) return {};
    std::fill(out.begin(), out.end(), std::byte{page->second});
    return {out.size(), request.sample_time_ns};
  }};
  std::map<uint64_t, uint8_t> pages;
  int reads = 0;
  uint32_t last_pid = 0;

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
  memory.code.begin_sample(kProgram, 5 * kNsPerSecond);
  CHECK(memory.at(kPage + 8) == Values{1, 1});
  CHECK(memory.last_pid == kProgram.pid);
  memory.pages[kPage] = 2;
  memory.code.begin_sample(kProgram, 6 * kNsPerSecond - 1);
  CHECK(memory.at(kPage + 16) == Values{1, 1});
  CHECK(memory.reads == 1);
  memory.code.begin_sample(kProgram, 6 * kNsPerSecond);
  CHECK(memory.at(kPage + 8) == Values{2, 2});
  CHECK(memory.reads == 2);
}

TEST_CASE("another process, and another map of the same, may have other code") {
  Memory memory;
  memory.pages[kPage] = 1;
  memory.code.begin_sample(kProgram, kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  memory.pages[kPage] = 2;
  memory.code.begin_sample({kProgram.pid + 1, kProgram.map_version}, kNsPerSecond);
  CHECK(memory.at(kPage) == Values{2, 2});
  memory.pages[kPage] = 3;
  memory.code.begin_sample({kProgram.pid + 1, kProgram.map_version + 1}, kNsPerSecond);
  CHECK(memory.at(kPage) == Values{3, 3});
}

TEST_CASE("code goes on from page to page, as far as there are any") {
  Memory memory;
  memory.pages = {{kPage, 1}, {kPage + kPage_bytes, 2}};
  memory.code.begin_sample(kProgram, kNsPerSecond);
  CHECK(memory.at(kPage + kPage_bytes - 1) == Values{1, 2});
  CHECK(memory.at(kPage + 2 * kPage_bytes - 1).empty());
  CHECK(memory.at(kPage + 2 * kPage_bytes - 1, 1) == Values{2});
  CHECK(memory.at(UINT64_MAX).empty());
}

TEST_CASE("what cannot be read is not asked for again at once") {
  Memory memory;
  memory.code.begin_sample(kProgram, kNsPerSecond);
  CHECK(memory.at(kPage).empty());
  CHECK(memory.at(kPage).empty());
  CHECK(memory.reads == 1);
  CHECK(memory.code.pages_not_read() == 1);
}

TEST_CASE("the code of a program that has ended is what was read last") {
  Memory memory;
  memory.pages[kPage] = 1;
  memory.code.begin_sample(kProgram, kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  memory.pages.clear();
  memory.code.begin_sample(kProgram, 3 * kNsPerSecond);
  CHECK(memory.at(kPage) == Values{1, 1});
  CHECK(memory.at(kPage) == Values{1, 1});
  CHECK(memory.reads == 2);
}

TEST_CASE("no more pages are read in a second than a hundredth of it allows") {
  Memory memory;
  const auto ask_for_many = [&](uint64_t time_ns) {
    memory.code.begin_sample(kProgram, time_ns);
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

TEST_CASE("without a way to read memory there is no code") {
  CodeInMemory code(nullptr);
  code.begin_sample(kProgram, kNsPerSecond);
  std::vector<std::byte> bytes(1);
  CHECK_FALSE(code.read_code({kPage}, bytes));
}
