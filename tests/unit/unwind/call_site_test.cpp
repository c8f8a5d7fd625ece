// Telling a call by the bytes before the address that it returns to. Encodings as gas writes them.
#include "unwind/call_site.h"

#include "support/catch2.h"
#include "support/fake_cfi.h"

using namespace sentry_prof;
using namespace sentry_prof::test;
using namespace sentry_prof::unwind;

namespace {

CallKind kind_before(std::initializer_list<int> bytes) {
  return call_before(Expression(bytes)).kind;
}

}  // namespace

TEST_CASE("a direct call says how far away its target is") {
  const Expression code{0x90, 0x90, 0xe8, 0x2d, 0, 0, 0};
  CHECK(call_before(code) == CallSite{CallKind::Direct, false, 0x2d});
  const Expression backward{0xe8, 0xcf, 0xff, 0xff, 0xff};
  CHECK(call_before(backward) == CallSite{CallKind::Direct, false, -0x31});
}

TEST_CASE("indirect calls of all lengths are known") {
  CHECK(kind_before({0xff, 0xd0}) == CallKind::Indirect);                          // *%rax
  CHECK(kind_before({0x41, 0xff, 0xd4}) == CallKind::Indirect);                    // *%r12
  CHECK(kind_before({0xff, 0x10}) == CallKind::Indirect);                          // *(%rax)
  CHECK(kind_before({0x41, 0xff, 0x14, 0x24}) == CallKind::Indirect);              // *(%r12)
  CHECK(kind_before({0xff, 0x50, 0x18}) == CallKind::Indirect);                    // *0x18(%rax)
  CHECK(kind_before({0x41, 0xff, 0x54, 0x24, 0x08}) == CallKind::Indirect);        // *8(%r12)
  CHECK(kind_before({0xff, 0x15, 0x5f, 0x2f, 0, 0}) == CallKind::Indirect);        // *x(%rip)
  CHECK(kind_before({0xff, 0x90, 0, 1, 0, 0}) == CallKind::Indirect);              // *0x100(%rax)
  CHECK(kind_before({0xff, 0x14, 0xc5, 0, 0x10, 0x40, 0}) == CallKind::Indirect);  // *x(,%rax,8)
  CHECK(kind_before({0xff, 0x94, 0xc8, 0, 1, 0, 0}) == CallKind::Indirect);  // *0x100(%rax,%rcx,8)
}

TEST_CASE("bytes of a direct call that may be the end of an indirect one") {
  // mov %rbp,%r8; xor %eax,%eax; call *%rbx
  const CallSite site = call_before(Expression({0x49, 0x89, 0xe8, 0x31, 0xc0, 0xff, 0xd3}));
  CHECK(site.kind == CallKind::Direct);
  CHECK(site.may_be_indirect);
}

TEST_CASE("what is no call is none") {
  CHECK(kind_before({}) == CallKind::None);
  CHECK(kind_before({0xd0}) == CallKind::None);
  CHECK(kind_before({0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3}) == CallKind::None);
  CHECK(kind_before({0xff, 0xe0}) == CallKind::None);              // jmp *%rax
  CHECK(kind_before({0xff, 0x25, 0, 0, 0, 0}) == CallKind::None);  // jmp *x(%rip)
  CHECK(kind_before({0xff, 0xd0, 0x90}) == CallKind::None);        // a call, but not the last
  CHECK(kind_before({0xff, 0x14}) == CallKind::None);              // cut off before its SIB
}

TEST_CASE("aarch64's calls are bl and blr, signed or not") {
  const auto site = [](std::initializer_list<int> bytes) {
    return call_before(Expression(bytes), Arch::Aarch64);
  };
  CHECK(site({0x02, 0, 0, 0x94}) == CallSite{CallKind::Direct, false, 4});         // bl .+8
  CHECK(site({0xff, 0xff, 0xff, 0x97}) == CallSite{CallKind::Direct, false, -8});  // bl .-4
  CHECK(site({0x00, 0x02, 0x3f, 0xd6}).kind == CallKind::Indirect);                // blr x16
  CHECK(site({0x1f, 0x09, 0x3f, 0xd6}).kind == CallKind::Indirect);                // blraaz x8
  CHECK(site({0x11, 0x09, 0x3f, 0xd7}).kind == CallKind::Indirect);                // blraa x8, x17
  CHECK(site({0xc0, 0x03, 0x5f, 0xd6}).kind == CallKind::None);                    // ret
  CHECK(site({0x02, 0, 0, 0x14}).kind == CallKind::None);                          // b .+8
  CHECK(site({0, 0, 0x94}).kind == CallKind::None);
}

TEST_CASE("what is known of an image's call does not depend on where a piece of it begins") {
  FakeCode code;
  code.put_call(0x1003, 0x1200);
  CallSites sites;
  uint32_t work = 0;
  const Module piece{{0x551000}, {0x552000}, {0x550000}, 1, nullptr, &code};
  const Module whole{{0x550000}, {0x552000}, {0x550000}, 1, nullptr, &code};
  CHECK(sites.before(piece, &code, 0x551003, work).kind == CallKind::Direct);
  CHECK(sites.before(whole, &code, 0x551003, work).kind == CallKind::Direct);
}

TEST_CASE("code linked above 16 GiB, which has no key, is read each time") {
  FakeCode code;
  code.put_call(0x3000001050, 0x3000001200);
  const Module module{{0x3000001000}, {0x3000002000}, {0}, 1, nullptr, &code};
  CallSites sites;
  for (int reads = 1; reads <= 2; ++reads) {
    uint32_t work = 0;
    CHECK(sites.before(module, &code, 0x3000001050, work).kind == CallKind::Direct);
    CHECK(work > 0);
    CHECK(code.reads() == reads);
  }
}

TEST_CASE("the code before an address is read once") {
  FakeCode code;
  code.put_call(0x1050, 0x1200);
  const Module module{{0x551000}, {0x552000}, {0x550000}, 1, nullptr, &code};
  CallSites sites;
  uint32_t work = 0;
  CHECK(sites.before(module, &code, 0x551050, work) == CallSite{CallKind::Direct, false, 0x1b0});
  CHECK(work > 0);
  work = 0;
  CHECK(sites.before(module, &code, 0x551050, work) == CallSite{CallKind::Direct, false, 0x1b0});
  CHECK(work == 0);
  CHECK(code.reads() == 1);
  CHECK(sites.before(module, &code, 0x551090, work).kind == CallKind::Unknown);
}

TEST_CASE("where the code begins nothing is read before, nor without code") {
  FakeCode code;
  code.put(0x1000, {0xff, 0xd0});
  const Module module{{0x551000}, {0x552000}, {0x550000}, 1, nullptr, &code};
  CallSites sites;
  uint32_t work = 0;
  CHECK(sites.before(module, &code, 0x551002, work).kind == CallKind::Indirect);
  CHECK(sites.before(module, &code, 0x551001, work).kind == CallKind::None);
  CHECK(sites.before(module, nullptr, 0x551002, work).kind == CallKind::Unknown);
}

TEST_CASE("code without an image is looked at each time, as it may change") {
  FakeCode code;
  const Module module{{0x551000}, {0x552000}, {}, kNoImage};
  CallSites sites;
  uint32_t work = 0;
  code.put_call(0x551050, 0x551200);
  CHECK(sites.before(module, &code, 0x551050, work).kind == CallKind::Direct);
  code.put(0x551049, {0, 0, 0, 0, 0, 0, 0});
  CHECK(sites.before(module, &code, 0x551050, work).kind == CallKind::None);
}
