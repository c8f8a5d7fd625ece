#include "os/priority.h"

#include "support/catch2.h"

#include <thread>

#include <sys/resource.h>

using namespace sentry_prof;
using os::RaisedPriority;
using os::ThreadPriority;

namespace {

bool may_be_raised() {
  bool is_raised = false;
  std::thread([&] { is_raised = ::setpriority(PRIO_PROCESS, 0, -20) == 0; }).join();
  return is_raised;
}

}  // namespace

TEST_CASE("RaisedPriority lasts as long as it lives, and is inherited") {
  const ThreadPriority before = os::thread_priority();
  {
    const RaisedPriority raised;
    CHECK(raised.previous() == before);
    const ThreadPriority now = os::thread_priority();
    CHECK(now.nice == (may_be_raised() ? -20 : before.nice));
    // Kernels without slices tell none.
    if (before.slice_ns > 0) CHECK(now.slice_ns == RaisedPriority::kSlice_ns);
    ThreadPriority inherited;
    ThreadPriority given_back;
    std::thread([&] {
      inherited = os::thread_priority();
      os::set_thread_priority(raised.previous());
      given_back = os::thread_priority();
    }).join();
    CHECK(inherited == now);
    CHECK(given_back == before);
  }
  CHECK(os::thread_priority() == before);
}
