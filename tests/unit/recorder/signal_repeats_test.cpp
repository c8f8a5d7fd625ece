#include "recorder/signal_repeats.h"

#include "support/catch2.h"

using namespace sentry_prof;
using recorder::SignalRepeats;

namespace {

constexpr uint64_t kStart_ns = 100 * kNsPerSecond;
constexpr uint64_t kMs_ns = kNsPerSecond / 1000;

// One process sends, and each signal is looked for at once; none was pending before.
struct Looked {
  SignalRepeats repeats;
  bool send(int signal, uint64_t at_ms) {
    repeats.on_none(kStart_ns + at_ms * kMs_ns - 1);
    return repeats.is_repeat(signal, false, kStart_ns + at_ms * kMs_ns);
  }
  bool type(int signal, uint64_t at_ms) {
    return repeats.is_repeat(signal, true, kStart_ns + at_ms * kMs_ns);
  }
};

}  // namespace

TEST_CASE("a signal that is sent again within a tenth of a second is a repeat") {
  Looked of;
  CHECK_FALSE(of.send(SIGTERM, 0));
  CHECK(of.send(SIGTERM, 1));
  CHECK(of.send(SIGTERM, 100));  // none was pending just before
  CHECK_FALSE(of.send(SIGTERM, 101));
  CHECK(of.send(SIGTERM, 150));
}

TEST_CASE("SIGHUP behind SIGTERM is one request, and so is SIGTERM behind SIGHUP; no others are") {
  for (const int first : {SIGTERM, SIGHUP}) {
    Looked of;
    CHECK_FALSE(of.send(first, 0));
    CHECK(of.send(first == SIGTERM ? SIGHUP : SIGTERM, 0));
    CHECK_FALSE(of.send(SIGINT, 0));
    CHECK_FALSE(of.send(SIGTERM, 0));
  }
}

TEST_CASE("a repeat may be taken late by who did not look since it could have been sent") {
  Looked of;
  CHECK_FALSE(of.send(SIGTERM, 0));
  of.repeats.on_none(kStart_ns + 50 * kMs_ns);
  CHECK(of.repeats.is_repeat(SIGHUP, false, kStart_ns + 900 * kMs_ns));
  of.repeats.on_none(kStart_ns + 950 * kMs_ns);
  CHECK_FALSE(of.repeats.is_repeat(SIGHUP, false, kStart_ns + 950 * kMs_ns));
}

TEST_CASE("a terminal's ^C is a repeat within a tenth of a second only, its hang-up never") {
  Looked of;
  of.repeats.on_none(kStart_ns);
  CHECK_FALSE(of.type(SIGINT, 0));
  CHECK(of.type(SIGINT, 99));
  CHECK_FALSE(of.type(SIGINT, 100));
  CHECK_FALSE(of.type(SIGTERM, 101));
  CHECK_FALSE(of.type(SIGHUP, 102));
}

TEST_CASE("repeats are waited for until none was pending a tenth of a second later") {
  Looked of;
  of.repeats.on_none(kStart_ns);
  CHECK(of.repeats.left_ns() == 0);
  CHECK_FALSE(of.send(SIGTERM, 0));
  of.repeats.on_none(kStart_ns + 30 * kMs_ns);
  CHECK(of.repeats.left_ns() == 70 * kMs_ns);
  of.repeats.on_none(kStart_ns + 100 * kMs_ns);
  CHECK(of.repeats.left_ns() == 0);
}
