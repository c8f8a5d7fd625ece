#include "recorder/deep_threads.h"

#include "support/catch2.h"

#include <utility>
#include <vector>

using namespace sentry_prof::recorder;

namespace {

// The thread, and where its stack ends.
using Told = std::vector<std::pair<uint32_t, uint64_t>>;

struct ToldThreads {
  Told told;
  uint64_t now_ns = 100;
  DeepThreads threads{[this](uint32_t pid, uint32_t tid, uint64_t end) {
                        CHECK(pid == 7);
                        told.emplace_back(tid, end);
                      },
                      [this] { return now_ns; }};
};

}  // namespace

TEST_CASE("a thread that was cut is told each time: the kernel may have forgotten it") {
  ToldThreads run;
  CHECK_FALSE(run.threads.on_cut(7, 7, 90, 0));
  CHECK_FALSE(run.threads.on_cut(7, 7, 95, 0x1000));  // taken before anybody was told
  CHECK(run.threads.on_cut(7, 7, 101, 0x1000));
  CHECK(run.told == Told{{7, 0}, {7, 0x1000}, {7, 0x1000}});
}

TEST_CASE("the other threads of its process are followed, too") {
  ToldThreads run;
  run.threads.on_cut(7, 7, 90, 0);
  CHECK_FALSE(run.threads.on_cut(7, 8, 91, 0));
  CHECK(run.threads.on_cut(7, 9, 101, 0));
  run.threads.forget_process(7);
  run.now_ns = 200;
  CHECK_FALSE(run.threads.on_cut(7, 9, 150, 0));
}

TEST_CASE("where their stacks end is told once, at their next whole one") {
  ToldThreads run;
  run.threads.on_whole(7, 8, 0x1000);
  CHECK(run.told.empty());
  run.threads.on_cut(7, 7, 90, 0);
  for (const uint64_t end : {0x0, 0x1000, 0x2000}) run.threads.on_whole(7, 8, end);
  run.threads.on_whole(9, 9, 0x1000);
  CHECK(run.told == Told{{7, 0}, {8, 0x1000}});
  run.threads.forget_thread(8);
  run.threads.on_whole(7, 8, 0x3000);
  CHECK(run.told.back() == std::pair<uint32_t, uint64_t>(8, 0x3000));
  run.threads.forget_process(7);
  run.threads.on_whole(7, 10, 0x1000);
  CHECK(run.told.size() == 3);
}

TEST_CASE("an end that was known stays, and is told once it is known") {
  ToldThreads run;
  run.threads.on_cut(7, 7, 90, 0);
  for (const uint64_t end : {0x0, 0x1000, 0x2000}) run.threads.on_whole(7, 7, end);
  run.threads.on_cut(7, 7, 100, 0);
  run.threads.on_cut(7, 7, 110, 0x3000);
  CHECK(run.told == Told{{7, 0}, {7, 0x1000}, {7, 0x1000}, {7, 0x3000}});
}

TEST_CASE("a replay has nobody to tell") {
  DeepThreads threads({}, {});
  CHECK_FALSE(threads.on_cut(7, 7, 90, 0));
  threads.on_whole(7, 8, 0x1000);
}
