// Times the walk over stored threads: walk_bench FOLDER..., each as scripts/make-snapshot writes
// it. "first" is the very first walk, with an empty rule cache; "next" is the mean of many more,
// and "remembered" of as many of a thread whose outer frames are where they were.
#include "cpu_time.h"
#include "support/snapshot.h"

#include <exception>

#include <fmt/format.h>

using namespace sentry_prof;
using sentry_prof::bench::cpu_now_ns;

namespace {

constexpr int kRepetitions = 100'000;

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
  const auto walk_once = [&](unwind::WalkMemory* memory) {
    walk = unwinder.walk(snapshot.registers(), stack, snapshot.modules(), memory);
  };
  const auto mean_ns = [&](unwind::WalkMemory* memory) {
    return time_ns([&] {
             for (int i = 0; i < kRepetitions; ++i) walk_once(memory);
           }) /
           kRepetitions;
  };
  const double first_ns = time_ns([&] { walk_once(nullptr); });
  const double next_ns = mean_ns(nullptr);
  unwind::WalkMemory memory;
  const double remembered_ns = mean_ns(&memory);
  const double frames = static_cast<double>(walk.frames.size());
  fmt::print(
      "{}: {} frames, {}; ns a frame: first {:.0f}, next {:.1f}, remembered {:.1f}; ns a walk: "
      "{:.0f}\n",
      folder, frames, name_of(walk.end), first_ns / frames, next_ns / frames,
      remembered_ns / frames, next_ns);
}

}  // namespace

int main(int argc, char** argv) try {
  for (int i = 1; i < argc; ++i) measure(argv[i]);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "walk_bench: {}\n", error.what());
  return 1;
}
