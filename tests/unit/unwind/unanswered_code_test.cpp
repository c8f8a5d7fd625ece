// Code that could not be read because nobody answered (an overlay, FUSE or NFS on a busy machine):
// what a walk makes of its absence is that walk's alone.
#include "support/catch2.h"
#include "walk_fixture.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

TEST_CASE("code that nobody gave is asked for again by the next walk") {
  World w;
  w.code.put(0x5010, {0x90, 0xc3});  // nop; ret, without a row
  w.code.put_call(0x2050, 0x5000);
  w.cfi.add(0x2000, 0x2100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
  w.cfi.add(0x3000, 0x3100, saving(row_with_cfa(kRbp, 16), kRbp, -16));
  w.cfi.add(0x4000, 0x4100, root_row());
  const FakeStack stack(0x7008, {at(0x2050), 0, 0x7030, at(0x3050), 0, 0, at(0x4050)});
  const auto walk = [&] { return pcs(w.walk(registers_at(at(0x5010), 0x7008, 0x7018), stack)); };

  w.code.is_silent = true;
  // By the frame pointer, which is still the caller's.
  CHECK(walk() == std::vector<uint64_t>{0x5010, 0x3050, 0x4050});
  w.code.is_silent = false;
  CHECK(walk() == std::vector<uint64_t>{0x5010, 0x2050, 0x3050, 0x4050});
}
