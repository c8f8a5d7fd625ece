#include "os/priority.h"

#include "support/catch2.h"

#include <thread>

using namespace sentry_prof;
using os::RaisedPriority;
using os::ThreadPriority;

TEST_CASE("RaisedPriority lasts as long as it lives, and is inherited") {
  const ThreadPriority before = os::thread_priority();
  {
    const RaisedPriority raised;
    CHECK(raised.previous() == before);
    const ThreadPriority now = os::thread_priority();
    CHECK(now.nice <= before.nice);
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
