#include "recorder/copied_code.h"

#include "recording_fixture.h"
#include "support/catch2.h"
#include "unit/target/fake_opener.h"

#include <set>

using namespace sentry_prof;
using namespace sentry_prof::recorder_test;

namespace {

constexpr uint64_t kPageSize = 4096;
constexpr uint64_t kTextBias = 0x7f0000000000;
constexpr uint64_t kTextLink = 0x2200;  // does not begin with a page
constexpr uint64_t kTextEnd = 0x2000 + 100 * kPageSize - 0x100;

std::byte byte_of_text(uint64_t link_address) {
  return static_cast<std::byte>(link_address * 7 + link_address / kPageSize);
}

class Text final : public unwind::CodeSource {
 public:
  bool read_code(LinkAddress begin, std::span<std::byte> out) const override {
    if (begin.value < kTextLink || begin.value + out.size() > kTextEnd) return false;
    for (size_t i = 0; i < out.size(); ++i) out[i] = byte_of_text(begin.value + i);
    return true;
  }
};

// A process that has a copy of that text, but for some bytes.
struct CopyOfText {
  Text file;
  unwind::Module code{
      {kTextBias + kTextLink}, {kTextBias + kTextEnd}, {kTextBias}, 1, nullptr, &file};
  std::set<uint64_t> patched;  // link addresses
  bool is_readable = true;
  int reads = 0;
  size_t pages_read = 0;
  CopiedCode copied{[this](const MemoryRequest& request, std::span<os::MemoryRange> ranges) {
    ++reads;
    pages_read = ranges.size();
    for (os::MemoryRange& range : ranges) {
      if (is_readable) fill(range);
    }
    return request.sample_time_ns;
  }};

  void fill(os::MemoryRange& range) const {
    const uint64_t begin = range.address - kTextBias;
    REQUIRE(begin >= kTextLink);
    REQUIRE(begin + range.out.size() <= kTextEnd);
    for (size_t i = 0; i < range.out.size(); ++i) {
      range.out[i] = byte_of_text(begin + i) ^ std::byte{patched.contains(begin + i)};
    }
    range.got_bytes = range.out.size();
  }

  bool is_copy(uint64_t pc, uint64_t time_ns = kNsPerSecond) {
    return copied.is_copy({100, time_ns}, code, {kTextBias + pc});
  }
};

}  // namespace

TEST_CASE("Memory is a copy if its first and last page, some between and the one that runs are") {
  CopyOfText text;
  constexpr uint64_t kPc = 0x9123;
  CHECK(text.is_copy(kPc));
  CHECK(text.reads == 1);
  CHECK(text.pages_read == CopiedCode::kSpreadPages + 1);

  const uint64_t patched =
      GENERATE(values<uint64_t>({kTextLink, kTextEnd - 1, kPc + 1, kPc & ~(kPageSize - 1)}));
  text.patched = {patched};
  CHECK_FALSE(text.is_copy(kPc));
}

TEST_CASE("What is patched on a page that nobody looks at does not count") {
  CopyOfText text;
  text.patched = {0x4000};
  CHECK(text.is_copy(0x9123));
  text.patched = {0x4000};
  CHECK_FALSE(text.is_copy(0x4800));
}

TEST_CASE("Of little code all is looked at") {
  CopyOfText text;
  text.code.end = {kTextBias + 0x4000};
  CHECK(text.is_copy(0x2300));
  CHECK(text.pages_read == 2);
}

TEST_CASE("What could not be read, or was another, is looked at again after ever longer times") {
  CopyOfText text;
  if (GENERATE(true, false)) {
    text.is_readable = false;
  } else {
    text.patched = {kTextLink};
  }
  const auto look_at_ms = [&](uint64_t ms) {
    text.reads = 0;
    const bool is_copy = text.is_copy(0x9123, kNsPerSecond + ms * 1'000'000);
    return std::pair(is_copy, text.reads);
  };
  CHECK(look_at_ms(0) == std::pair(false, 1));
  CHECK(look_at_ms(19) == std::pair(false, 0));
  CHECK(look_at_ms(20) == std::pair(false, 1));
  CHECK(look_at_ms(59) == std::pair(false, 0));
  SECTION("and may be one then") {
    text.is_readable = true;
    text.patched.clear();
    CHECK(look_at_ms(60) == std::pair(true, 1));
  }
  SECTION("but at once in another program") {
    text.copied.forget(100);
    CHECK(look_at_ms(59) == std::pair(false, 1));
  }
}

namespace {

// The library's code is what the process has at kCode by default.
struct CopyingProgram : RecordingFixture {
  CopyingProgram() {
    opener.files["/lib/copied.so"] = test::make_library({});
    MapEvent map;
    map.pid = map.tid = kPid;
    map.begin = {kCode};
    map.size_bytes = kCode_bytes;
    map.file_offset = 0x1000;
    map.inode = 7;
    map.path = "/lib/copied.so";
    recording->on_event({kNsPerSecond, map});
    map_code(kNsPerSecond, kCode);
  }

  // "" for anonymous memory.
  std::vector<std::string> leaf_images() {
    finish(9 * kNsPerSecond);
    const Profile& profile = sink.profiles.at(0);
    std::vector<std::string> leaves;
    for (const auto& sample : profile.samples) {
      const auto stack = profile.stack(sample.stack);
      if (stack.empty()) continue;
      const uint32_t image = profile.frames.at(stack[0]).image;
      leaves.push_back(image == Frame::kNoImage ? "" : profile.images.at(image).code_file);
    }
    return leaves;
  }
};

using LeafImages = std::vector<std::string>;

}  // namespace

TEST_CASE("Code that was copied is its image's from the first sample on") {
  CopyingProgram run;
  run.sample(2 * kNsPerSecond);
  const size_t reads = run.reads;
  run.sample(2 * kNsPerSecond + 1);
  CHECK(run.reads == reads);
  CHECK(run.leaf_images() == LeafImages(2, "/lib/copied.so"));
}

TEST_CASE("Each time that its memory is mapped anew it is compared anew") {
  CopyingProgram run;
  run.sample(2 * kNsPerSecond);
  run.live_code[0x800] = std::byte{0xcc};
  run.map_code(3 * kNsPerSecond, kCode);
  run.sample(3 * kNsPerSecond + 1);
  run.live_code[0x800] = kNop;
  run.sample(3 * kNsPerSecond + 2);
  run.sample(4 * kNsPerSecond);
  CHECK(run.leaf_images() == LeafImages{"/lib/copied.so", "", "", "/lib/copied.so"});
}

TEST_CASE("Code that cannot be read has no image") {
  CopyingProgram run;
  run.live_code.clear();
  run.sample(2 * kNsPerSecond);
  run.sample(4 * kNsPerSecond);
  CHECK(run.leaf_images() == LeafImages(2, ""));
}
