// The start code of glibc's programs, as linkers leave it.
#include "unwind/start_code.h"

#include "support/catch2.h"
#include "support/fake_cfi.h"

using namespace sentry_prof;
using namespace sentry_prof::test;
using namespace sentry_prof::unwind;

namespace {

constexpr uint64_t kStartCode = 0x1000;

std::optional<uint64_t> main_of(const FakeCode& code) {
  uint32_t work = 0;
  const auto found = main_function(code, work);
  return found ? std::optional(found->value) : std::nullopt;
}

FakeCode start_code(const std::vector<int>& bytes) {
  FakeCode code;
  code.put(kStartCode, bytes);
  code.put(kStartCode + bytes.size(), {0xff, 0x15, 0, 0, 0, 0, 0xf4});  // call *x(%rip); hlt
  code.entry = {kStartCode};
  return code;
}

}  // namespace

TEST_CASE("main is what the start code puts into %rdi") {
  CHECK(main_of(start_code({0x31, 0xed,                               // xor %ebp,%ebp
                            0x48, 0x8d, 0x3d, 0x6b, 0x0b, 0, 0})) ==  // lea 0xb6b(%rip),%rdi
        kStartCode + 9 + 0xb6b);
  CHECK(main_of(start_code({0x48, 0x8d, 0x3d, 0xf0, 0xff, 0xff, 0xff})) == kStartCode + 7 - 16);
  CHECK(main_of(start_code({0x48, 0xc7, 0xc7, 0x36, 0x11, 0x40, 0})) == 0x401136);  // mov $x,%rdi
}

TEST_CASE("start code that hands over something else tells nothing of main") {
  CHECK_FALSE(main_of(start_code({0x48, 0x89, 0xe7})));                 // mov %rsp,%rdi
  CHECK_FALSE(main_of(start_code({0x48, 0x8b, 0x3d, 0x10, 0, 0, 0})));  // mov x(%rip),%rdi
  CHECK_FALSE(main_of(start_code({0x48, 0x8d, 0x35, 0x10, 0, 0, 0})));  // lea x(%rip),%rsi
  CHECK_FALSE(main_of(start_code({0x06})));                             // no instruction
}

TEST_CASE("musl's start code leaves it to a function that it calls") {
  FakeCode code = start_code({0x48, 0x89, 0xe7,         // mov %rsp,%rdi
                              0xe8, 0x18, 0, 0, 0});    // call kStartCode + 0x20
  code.put(kStartCode + 0x20, {0x48, 0x8d, 0x57, 0x08,  // lea 8(%rdi),%rdx
                               0x48, 0xc7, 0xc7, 0x36, 0x11, 0x40, 0});
  CHECK(main_of(code) == 0x401136);
}

TEST_CASE("what stands behind the start code's end tells nothing of main") {
  for (const std::vector<int>& end : {std::vector<int>{0xf4}, {0xc3}, {0xeb, 0x00}, {0xff, 0xe0}}) {
    FakeCode code;
    code.put(kStartCode, end);
    code.put(kStartCode + end.size(), {0x48, 0x8d, 0x3d, 0x6b, 0x0b, 0, 0, 0xf4});
    code.entry = {kStartCode};
    CHECK_FALSE(main_of(code));
  }
}

TEST_CASE("what has no entry point, or none that can be read, has no main") {
  FakeCode library = start_code({0x48, 0x8d, 0x3d, 0x6b, 0x0b, 0, 0});
  library.entry = {};
  CHECK_FALSE(main_of(library));
  library.entry = {0x9000};
  CHECK_FALSE(main_of(library));
}

TEST_CASE("start code ends behind what never goes on") {
  FakeCode code;
  code.put(kStartCode, {0x31, 0xed,           // xor %ebp,%ebp
                        0x74, 0x05,           // je to the hlt
                        0xe8, 0x09, 0, 0, 0,  // call
                        0xf4});               // hlt
  for (uint64_t i = 10; i < 80; ++i) code.put(kStartCode + i, {0x90});
  code.entry = {kStartCode};
  const auto ends_before = [&code](uint64_t offset) {
    uint32_t work = 0;
    return start_code_ends_before(code, {kStartCode + offset}, work);
  };
  CHECK_FALSE(ends_before(0));
  CHECK_FALSE(ends_before(8));  // where the call's return address is looked up
  CHECK_FALSE(ends_before(9));
  CHECK(ends_before(10));
  CHECK(ends_before(63));
  CHECK_FALSE(ends_before(64));  // nobody takes that for start code
  CHECK_FALSE(ends_before(uint64_t{0} - 1));
  code.put(kStartCode + 3, {0x06});  // je over the hlt
  CHECK_FALSE(ends_before(10));
  code.put(kStartCode + 9, {0x06});  // no instruction
  CHECK_FALSE(ends_before(20));
}
