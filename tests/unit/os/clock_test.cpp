#include "os/clock.h"

#include "support/catch2.h"
#include "support/wait_until.h"

using namespace sentry_prof;

TEST_CASE("A thread's CPU time goes on while it works, and not while it sleeps") {
  const uint64_t begin_ns = os::thread_cpu_ns();
  CHECK(test::wait_until([begin_ns] {
    uint64_t now_ns = 0;
    for (int i = 0; i < 1000; ++i) now_ns = os::thread_cpu_ns();
    return now_ns > begin_ns + 1'000'000;
  }));
  const uint64_t before_sleep_ns = os::thread_cpu_ns();
  test::sleep_for(0.05);
  CHECK(os::thread_cpu_ns() - before_sleep_ns < 25'000'000);
}
