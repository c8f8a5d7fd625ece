// Stacks deeper than their copies: what is asked of the process, and when nothing is.
#include "recorder/live_stack.h"

#include "support/catch2.h"

#include <algorithm>
#include <cstring>

using namespace sentry_prof;
using namespace sentry_prof::recorder;

namespace {

constexpr uint64_t kStack = 0x7000'0000;
constexpr uint64_t kSlot = kStack + 0x100;  // of the last return address in the copy
constexpr uint64_t kCopyEnd = kStack + 0x200;
constexpr uint64_t kReturnAddress = 0x401234;
constexpr uint64_t kSecond_ns = 1'000'000'000;

// A process whose stack ends at `end`.
struct FakeProcess {
  explicit FakeProcess(uint64_t end) : memory(end - kStack) {
    std::memcpy(memory.data() + (kSlot - kStack), &kReturnAddress, sizeof(kReturnAddress));
    for (size_t i = kCopyEnd - kStack; i < memory.size(); ++i) memory[i] = std::byte(i % 251);
  }

  ReadMemory reader() {
    return [this](const MemoryRequest& request, std::span<std::byte> out) -> size_t {
      bytes_asked += out.size();
      const uint64_t offset = request.address.value - kStack;
      if (offset >= memory.size()) return 0;
      const size_t count = std::min<size_t>(out.size(), memory.size() - offset);
      std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(offset), count, out.begin());
      return count;
    };
  }

  std::vector<std::byte> memory;
  uint64_t bytes_asked = 0;
};

unwind::Walk cut_walk() { return {{}, unwind::WalkEnd::StackTruncated, {kSlot, kReturnAddress}}; }

MemoryRequest request_at(uint64_t time_ns) { return {42, time_ns, {kCopyEnd}}; }

}  // namespace

TEST_CASE("A stack is read piece by piece, each time from the copy's end on, up to its own end") {
  FakeProcess process(kStack + 300'000);
  LiveStack stack(process.reader());
  REQUIRE(stack.begin(request_at(kSecond_ns), cut_walk()));
  CHECK(stack.bytes().empty());
  REQUIRE(stack.grow());
  CHECK(stack.bytes().size() == 65'536);
  REQUIRE(stack.grow());
  CHECK(stack.bytes().size() == 262'144);
  REQUIRE(stack.grow());
  CHECK(stack.bytes().size() == 300'000 - 0x200);
  CHECK(std::ranges::equal(stack.bytes(), std::span(process.memory).subspan(0x200)));
  CHECK_FALSE(stack.grow());
}

TEST_CASE("A stack that has returned past the copy since is left alone") {
  FakeProcess process(kStack + 300'000);
  process.memory[kSlot - kStack] ^= std::byte{1};
  LiveStack stack(process.reader());
  CHECK_FALSE(stack.begin(request_at(kSecond_ns), cut_walk()));
  CHECK(process.bytes_asked == 8);
}

TEST_CASE("Without a return address in the copy nothing proves that the stack is the same") {
  FakeProcess process(kStack + 300'000);
  LiveStack stack(process.reader());
  CHECK_FALSE(stack.begin(request_at(kSecond_ns), {{}, unwind::WalkEnd::StackTruncated, {}}));
  CHECK(process.bytes_asked == 0);
}

TEST_CASE("A process that cannot be read has no live stack") {
  LiveStack ended([](const MemoryRequest&, std::span<std::byte>) { return size_t{0}; });
  CHECK_FALSE(ended.begin(request_at(kSecond_ns), cut_walk()));
  LiveStack none(nullptr);
  CHECK_FALSE(none.begin(request_at(kSecond_ns), cut_walk()));
}

TEST_CASE("No stack is read beyond the usual limit of a stack, and none beyond a second's share") {
  FakeProcess process(kStack + 20'000'000);
  LiveStack stack(process.reader());
  const auto read_all = [&](uint64_t time_ns) {
    if (!stack.begin(request_at(time_ns), cut_walk())) return size_t{0};
    while (stack.grow()) continue;
    return stack.bytes().size();
  };
  CHECK(read_all(kSecond_ns) == kMaxLiveStack_bytes);
  size_t whole = 0;
  for (int i = 0; i < 100; ++i) whole += read_all(kSecond_ns) == kMaxLiveStack_bytes;
  CHECK(whole == 63);  // 512 MiB in all
  CHECK(read_all(2 * kSecond_ns) == kMaxLiveStack_bytes);
}
