// Times the walk over stored threads: walk_bench FOLDER..., each as scripts/make-snapshot writes
// it. "first" is the very first walk, with an empty rule cache; "next" is the mean of many more.
#include "support/snapshot.h"

#include <ctime>
#include <exception>

#include <fmt/format.h>

using namespace sentry_prof;

namespace {

constexpr int kRepetitions = 100'000;

// CPU time of this thread: what others do on the machine meanwhile does not count.
double cpu_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <typename Work>
double time_ns(Work&& work) {
  const double begin = cpu_now_ns();
  work();
  return cpu_now_ns() - begin;
}

void measure(const char* folder) {
  const test::Snapshot snapshot(folder);
  const unwind::StackSnapshot stack = snapshot.stack();
  unwind::Unwinder unwinder(unwind::Arch::X86_64);
  unwind::Walk walk;
  const auto walk_once = [&] {
    walk = unwinder.walk(snapshot.registers(), stack, snapshot.modules());
  };
  const double first_ns = time_ns(walk_once);
  const double next_ns = time_ns([&] {
                           for (int i = 0; i < kRepetitions; ++i) walk_once();
                         }) /
                         kRepetitions;
  const double frames = static_cast<double>(walk.frames.size());
  fmt::print("{}: {} frames, {}; ns a frame: first {:.0f}, next {:.1f}; ns a walk: {:.0f}\n",
             folder, frames, name_of(walk.end), first_ns / frames, next_ns / frames, next_ns);
}

}  // namespace

int main(int argc, char** argv) try {
  for (int i = 1; i < argc; ++i) measure(argv[i]);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "walk_bench: {}\n", error.what());
  return 1;
}
