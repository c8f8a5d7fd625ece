#include "os/proc_text.h"

#include "support/catch2.h"

using namespace sentry_prof;
using os::parse_stat;
using os::parse_status;

TEST_CASE("parse_stat finds its fields behind any name") {
  const auto plain = parse_stat("42 (cat) S 41 42 42 34816 42 4194304 120 0 0\n");
  REQUIRE(plain);
  CHECK(plain->state == 'S');
  CHECK(plain->parent_pid == 41);
  CHECK_FALSE(plain->is_kernel_thread);
  const auto odd = parse_stat("42 (a) Z 9 (b) c\n) R 41 42 42 0 -1 4194304 0");
  REQUIRE(odd);
  CHECK(odd->state == 'R');
  CHECK(odd->parent_pid == 41);
  const auto whole = parse_stat(
      "42 (cat) S 41 42 42 34816 42 4194304 120 0 0 0 7 8 0 0 20 0 1 0 151642 8192 0 1\n");
  REQUIRE(whole);
  CHECK(whole->start_ticks == 151642);
  const auto kernel = parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0");
  REQUIRE(kernel);
  CHECK(kernel->is_kernel_thread);
}

TEST_CASE("parse_stat refuses what is cut off") {
  for (const char* text : {"", "42 (cat", "42 (cat)", "42 (cat) S", "42 (cat) S x 1 1 1 1 1",
                           "42 (cat) SS 41 42 42 0 -1 0", "42 (cat) S 41 42 42 0 -1"}) {
    INFO(text);
    CHECK_FALSE(parse_stat(text));
  }
}

TEST_CASE("parse_status reads ids and capabilities") {
  const auto status = parse_status(
      "Name:\tcat\\nTgid:\t7\nUmask:\t0022\nTgid:\t42\nPid:\t43\nUid:\t1\t2\t3\t4\n"
      "Gid:\t5\t6\t7\t8\nNSpid:\t42\t17\t3\nCapInh:\t0000000000000000\nCapEff:"
      "\t000001ffffffffff\n");
  REQUIRE(status);
  CHECK(status->thread_group == 42);
  CHECK(status->user_ids == std::array<uint32_t, 4>{1, 2, 3, 4});
  CHECK(status->group_ids == std::array<uint32_t, 4>{5, 6, 7, 8});
  CHECK(status->innermost_pid == 3);
  CHECK(status->effective_capabilities == 0x1ffffffffff);
}

TEST_CASE("parse_status does without what is missing, except the ids") {
  CHECK(parse_status("Name:\tx\nTgid:\t42\nUid:\t1\t2\t3\t4\n")->effective_capabilities == 0);
  CHECK_FALSE(parse_status(""));
  CHECK_FALSE(parse_status("Name:\tx\nTgid:\t42\nUid:\t1\t2\n"));
  CHECK_FALSE(parse_status("Name:\tx\nUid:\t1\t2\t3\t4\n"));
}
