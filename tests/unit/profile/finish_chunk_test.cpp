#include "profile/finish_chunk.h"

#include "support/catch2.h"

#include <map>

using namespace sentry_prof;
using namespace sentry_prof::profile;

namespace {

constexpr uint32_t kProgram = 0, kLibrary = 1, kJit = 2;
constexpr uint64_t kProgramAt = 0x550000000000, kLibraryAt = 0x7f0000000000;

ImageFacts facts(std::string file, uint64_t address, uint64_t size, uint64_t vmaddr = 0) {
  ImageFacts result;
  result.image.code_file = std::move(file);
  result.image.image_size = size;
  result.image.image_vmaddr = vmaddr;
  result.first_seen_addr = address;
  return result;
}

class FakeNames final : public FrameNames {
 public:
  FakeNames() {
    images[kProgram] = facts("/usr/bin/prog", kProgramAt, 0x10000);
    images[kLibrary] = facts("/usr/lib/libfoo.so.1", kLibraryAt, 0x20000, 0x400000);
    images[kJit] = facts("", kLibraryAt + 0x100000, 0x1000);
    images[kJit].is_file = false;
  }
  const ImageFacts& image(uint32_t image) const override { return images.at(image); }
  std::vector<FrameName> names_of(std::span<const FrameKey> frames) override {
    std::vector<FrameName> result;
    for (const FrameKey& frame : frames) result.push_back({name_of(frame), function_start(frame)});
    return result;
  }

  std::map<uint32_t, ImageFacts> images;
  std::map<uint64_t, std::string> by_pc, by_return_address;
  std::map<uint64_t, uint64_t> start_by_pc;

 private:
  std::string name_of(const FrameKey& frame) const {
    const auto& names = frame.is_exact ? by_pc : by_return_address;
    const auto it = names.find(frame.pc);
    return it == names.end() ? "" : it->second;
  }
  std::optional<uint64_t> function_start(const FrameKey& frame) const {
    const auto it = start_by_pc.find(frame.pc);
    return it == start_by_pc.end() ? std::nullopt : std::optional(it->second);
  }
};

FrameKey leaf(uint32_t image, uint64_t pc) { return {image, true, pc}; }
FrameKey caller(uint32_t image, uint64_t pc) { return {image, false, pc}; }

struct Fixture {
  ChunkBuilder builder{1000};
  FakeNames names;
  ImagePlacer placer;
  ClockAnchor clock{500, 1'700'000'000'000'000'000};

  void sample(uint64_t time_ns, uint32_t thread, std::vector<FrameKey> frames) {
    builder.add_sample(time_ns, thread, frames);
  }
  Profile finish(uint32_t main_pid = 10) {
    return finish_chunk(builder.finish(9000), {}, clock, main_pid, names, placer);
  }
};

std::vector<std::string> functions(const Profile& profile, uint32_t stack) {
  std::vector<std::string> result;
  for (uint32_t index : profile.stack(stack)) result.push_back(profile.frames[index].function);
  return result;
}

}  // namespace

TEST_CASE("Times before 1970 and beyond 64 bits become these limits") {
  constexpr ClockAnchor kClock{500, 100};
  CHECK(kClock.to_unix_ns(501) == 101);
  CHECK(kClock.to_unix_ns(400) == 0);
  CHECK(kClock.to_unix_ns(399) == 0);
  CHECK(ClockAnchor{500, UINT64_MAX - 1}.to_unix_ns(510) == UINT64_MAX);
}

TEST_CASE("Frames get names, addresses in the profile, and their image") {
  Fixture f;
  f.names.by_pc[0x400123] = "work";
  f.names.by_return_address[0x1234] = "main";
  const uint32_t thread = f.builder.thread(10, 10, 0);
  f.sample(1500, thread, {leaf(kLibrary, 0x400123), caller(kProgram, 0x1234)});
  const Profile profile = f.finish();

  REQUIRE(profile.images.size() == 2);
  CHECK(profile.images[0].code_file == "/usr/bin/prog");
  CHECK(profile.images[1].image_addr == kLibraryAt);
  CHECK(profile.images[1].image_vmaddr == 0x400000);
  CHECK(functions(profile, 1) == std::vector<std::string>{"work", "main"});
  CHECK(profile.frames[0].instruction_addr == kLibraryAt + 0x123);
  CHECK(profile.frames[0].image == 1);
  CHECK(profile.frames[1].instruction_addr == kProgramAt + 0x1234);  // raw, no minus one
}

TEST_CASE("Named code that no file holds was compiled while the program ran") {
  Fixture f;
  f.names.by_pc[0x80] = "script";
  f.names.by_return_address[0x1234] = "main";
  const uint32_t thread = f.builder.thread(10, 10, 0);
  f.sample(1500, thread, {leaf(kJit, 0x80), caller(kJit, 0x90), caller(kProgram, 0x1234)});
  const Profile profile = f.finish();
  CHECK(functions(profile, 1) == std::vector<std::string>{"script", "[anon]+0x90", "main"});
  CHECK(profile.frames[0].is_compiled);
  CHECK_FALSE(profile.frames[1].is_compiled);
  CHECK_FALSE(profile.frames[2].is_compiled);
}

TEST_CASE("Frames without a name say where they are") {
  Fixture f;
  const uint32_t thread = f.builder.thread(10, 10, 0);
  f.sample(1500, thread,
           {leaf(kLibrary, 0x400123), caller(kJit, 0x80), caller(FrameKey::kNoImage, 0xabc0)});
  const Profile profile = f.finish();
  CHECK(functions(profile, 1) ==
        std::vector<std::string>{"libfoo.so.1+0x123", "[anon]+0x80", "0xabc0"});
  CHECK(profile.images.size() == 1);  // anonymous memory is no debug image
  CHECK(profile.frames[1].image == Frame::kNoImage);
  CHECK(profile.frames[1].instruction_addr == kLibraryAt + 0x100080);
}

TEST_CASE("Frames without a name are called by their function's begin, and stay where they are") {
  Fixture f;
  f.names.start_by_pc = {{0x400123, 0x400100}, {0x400145, 0x400100}, {0x400200, 0x3fffff}};
  f.names.by_pc[0x400300] = "work";
  f.names.start_by_pc[0x400300] = 0x400280;
  const uint32_t thread = f.builder.thread(10, 10, 0);
  f.sample(1500, thread, {leaf(kLibrary, 0x400123), caller(kLibrary, 0x400145)});
  f.sample(1600, thread, {leaf(kLibrary, 0x400300), caller(kLibrary, 0x400200)});
  const Profile profile = f.finish();
  CHECK(functions(profile, 1) ==
        std::vector<std::string>{"libfoo.so.1+0x100", "libfoo.so.1+0x100"});
  // A begin below the image is none.
  CHECK(functions(profile, 2) == std::vector<std::string>{"work", "libfoo.so.1+0x200"});
  CHECK(profile.frames[0].instruction_addr == kLibraryAt + 0x123);
  CHECK(profile.frames[1].instruction_addr == kLibraryAt + 0x145);
}

TEST_CASE("Frames at one address are one, unless they have two names") {
  Fixture f;
  f.names.by_pc[0x100] = "same";
  f.names.by_return_address[0x100] = "same";
  f.names.by_pc[0x200] = "next_function";
  f.names.by_return_address[0x200] = "calls_abort";
  const uint32_t thread = f.builder.thread(10, 10, 0);
  f.sample(1500, thread, {leaf(kProgram, 0x100), caller(kProgram, 0x200)});
  f.sample(1600, thread, {leaf(kProgram, 0x200), caller(kProgram, 0x100)});
  const Profile profile = f.finish();
  CHECK(profile.frames.size() == 3);
  CHECK(functions(profile, profile.samples[0].stack) ==
        std::vector<std::string>{"same", "calls_abort"});
  CHECK(functions(profile, profile.samples[1].stack) ==
        std::vector<std::string>{"next_function", "same"});
}

TEST_CASE("Stacks that are equal once their frames are merged become one") {
  Fixture f;
  f.names.by_pc[0x100] = "same";
  f.names.by_return_address[0x100] = "same";
  const uint32_t thread = f.builder.thread(10, 10, 0);
  f.sample(1500, thread, {leaf(kProgram, 0x100)});
  f.sample(1600, thread, {caller(kProgram, 0x100)});
  f.sample(1700, thread, {});
  const Profile profile = f.finish();
  CHECK(profile.stack_count() == 2);  // the empty one is always there
  CHECK(profile.samples[0].stack == 1);
  CHECK(profile.samples[1].stack == 1);
  CHECK(profile.samples[2].stack == 0);
}

TEST_CASE("An address outside its image never reads as another image's") {
  Fixture f;
  const uint32_t thread = f.builder.thread(10, 10, 0);
  const uint64_t offset_into_library = kLibraryAt - kProgramAt + 0x40;
  f.sample(1500, thread,
           {leaf(kProgram, offset_into_library), caller(FrameKey::kNoImage, kLibraryAt + 0x10),
            caller(kLibrary, 0x400000)});
  const Profile profile = f.finish();
  REQUIRE(profile.images.size() == 1);
  CHECK(profile.frames[0].instruction_addr == kLibraryAt + 0x40 + (uint64_t{1} << 63));
  CHECK(profile.frames[0].image == Frame::kNoImage);
  CHECK(profile.frames[1].instruction_addr == kLibraryAt + 0x10 + (uint64_t{1} << 63));
  CHECK(profile.frames[1].function == "0x7f0000000010");
}

TEST_CASE("Images of several processes at one address do not overlap, chunk after chunk") {
  Fixture f;
  f.names.images[7] = facts("/usr/bin/other", kProgramAt, 0x10000);
  for (int chunk = 0; chunk < 2; ++chunk) {
    const uint32_t thread = f.builder.thread(10, 10, 0);
    f.sample(9500, thread, {leaf(kProgram, 0x10), caller(7, 0x10)});
    const Profile profile = f.finish();
    REQUIRE(profile.images.size() == 2);
    CHECK(profile.images[0].image_addr == kProgramAt);
    CHECK(profile.images[1].image_addr == kProgramAt + 0x10000);
    CHECK(profile.images[1].code_file == "/usr/bin/other");
  }
}

TEST_CASE("A reused tid gets an id of its own, and threads without samples are left out") {
  Fixture f;
  f.builder.thread(10, 99, 0);
  for (uint32_t generation : {0u, 1u, 2u}) {
    const uint32_t thread = f.builder.thread(10, 11, generation);
    f.sample(2000 + generation, thread, {leaf(kProgram, 1)});
  }
  const Profile profile = f.finish();
  REQUIRE(profile.threads.size() == 3);
  CHECK(profile.threads[0].id == 11);
  CHECK(profile.threads[1].id == 11 + (uint64_t{1} << 32));
  CHECK(profile.threads[2].id == 11 + (uint64_t{2} << 32));
  CHECK(profile.samples[2].thread == 2);
}

TEST_CASE("A thread keeps its id in later chunks, whoever had the tid before") {
  Fixture f;
  f.sample(2000, f.builder.thread(10, 11, 0), {leaf(kProgram, 1)});
  CHECK(f.finish().threads[0].id == 11);
  f.sample(9500, f.builder.thread(10, 11, 1), {leaf(kProgram, 1)});
  CHECK(f.finish().threads[0].id == 11 + (uint64_t{1} << 32));
}

TEST_CASE("Thread names are printable and carry other processes") {
  Fixture f;
  const auto add = [&](uint32_t pid, uint32_t tid, std::string_view name,
                       std::string_view process) {
    const uint32_t thread = f.builder.thread(pid, tid, 0);
    f.builder.name_thread(thread, name, process);
    f.sample(2000, thread, {leaf(kProgram, 1)});
  };
  add(10, 10, "make", "make");
  add(10, 11, "\x1b]0;evil\xff", "make");
  add(20, 20, "cc1plus", "cc1plus");
  add(20, 21, "worker", "cc1plus");
  add(30, 30, "", "");
  add(10, 12, "", "");
  const Profile profile = f.finish();
  std::vector<std::string> names;
  for (const Thread& thread : profile.threads) names.push_back(thread.name);
  CHECK(names == std::vector<std::string>{"make", "\xef\xbf\xbd]0;evil\xef\xbf\xbd", "cc1plus (20)",
                                          "worker (cc1plus 20)", "thread 30 (30)", "thread 12"});
}

TEST_CASE("Thread names stay within what the estimate of the chunk's size gives them") {
  Fixture f;
  const std::string controls(62, '\x01');  // of a hostile perf.data: U+FFFD each
  const uint32_t thread = f.builder.thread(20, 21, 0);
  f.builder.name_thread(thread, controls, controls);
  f.sample(2000, thread, {leaf(kProgram, 1)});
  const std::string name = f.finish().threads[0].name;
  CHECK(name.size() <= kThreadName_bytes);
  CHECK(name.ends_with("(20)"));
}

TEST_CASE("The main thread is shown first if it has two samples and a tenth of the busiest's") {
  struct Case {
    int main_samples, busy_samples;
    bool main_is_first;
  };
  for (const Case& c : {Case{2, 3, true}, {1, 3, false}, {3, 30, true}, {2, 30, false}}) {
    Fixture f;
    const uint32_t busy = f.builder.thread(10, 12, 0);
    const uint32_t main = f.builder.thread(10, 10, 0);
    for (int i = 0; i < c.busy_samples; ++i) f.sample(2000, busy, {leaf(kProgram, 1)});
    for (int i = 0; i < c.main_samples; ++i) f.sample(2000, main, {leaf(kProgram, 1)});
    const Profile profile = f.finish();
    CHECK(profile.threads[profile.main_thread].tid == (c.main_is_first ? 10u : 12u));
  }
}

TEST_CASE("Times are wall-clock times, also before the anchor, and sorted") {
  Fixture f;
  f.clock.monotonic_ns = 2000;
  const uint32_t thread = f.builder.thread(10, 10, 0);
  f.sample(2500, thread, {leaf(kProgram, 1)});
  f.sample(1500, thread, {});
  const Profile profile = f.finish();
  CHECK(profile.start_unix_ns == f.clock.unix_ns - 1000);
  CHECK(profile.end_unix_ns == f.clock.unix_ns + 7000);
  CHECK(profile.samples[0].unix_time_ns == f.clock.unix_ns - 500);
  CHECK(profile.samples[0].stack == 0);
  CHECK(profile.samples[1].unix_time_ns == f.clock.unix_ns + 500);
}

TEST_CASE("Function names are repaired, and kept within the budget of the size estimate") {
  Fixture f;
  f.names.by_pc[1] = "a\xff\n";
  const uint32_t thread = f.builder.thread(10, 10, 0);
  f.sample(2000, thread, {leaf(kProgram, 1)});
  CHECK(f.finish().frames[0].function == "a\xef\xbf\xbd\xef\xbf\xbd");

  f.names.by_pc[1] = std::string(100'000, 'x');
  f.sample(10'000, f.builder.thread(10, 10, 0), {leaf(kProgram, 1)});
  CHECK(f.finish().frames[0].function.size() == kFrameName_bytes);

  f.names.by_pc[1] = std::string(kFrameName_bytes, '"');  // in JSON each takes two bytes
  f.sample(10'000, f.builder.thread(10, 10, 0), {leaf(kProgram, 1)});
  CHECK(f.finish().frames[0].function.size() == kFrameName_bytes / 2);
}

TEST_CASE("The path of an image is printable and keeps both ends when it is too long") {
  Fixture f;
  f.names.images[kProgram] =
      facts("/usr/\x01" + std::string(4'000, 'd') + "/prog", kProgramAt, 0x10000);
  f.sample(2000, f.builder.thread(10, 10, 0), {leaf(kProgram, 0x1234)});
  const Profile profile = f.finish();
  const std::string& path = profile.images[0].code_file;
  CHECK(path.size() <= kImagePath_bytes);
  CHECK(
      path.starts_with("/usr/\xef\xbf\xbd"
                       "ddd"));
  CHECK(path.ends_with("ddd/prog"));
  CHECK(profile.frames[0].function == "prog+0x1234");
}
