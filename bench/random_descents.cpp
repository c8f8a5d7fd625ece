// The worst for a profiler that finishes a stack from what the process's memory holds a moment
// later, or held a moment before: descends through many calls of two functions whose frames have
// the same size, chosen at random, stays at the end for some milliseconds, returns, and descends
// again. The first and the last function of a descent have its number, so that a stack tells
// whether it is of one piece.
//   random_descents [SECONDS [CALLS [MILLISECONDS [PATHS]]]]
// With PATHS only so many descents are made in turn, each always the same.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace {

using Clock = std::chrono::steady_clock;
using Last = void (*)();

constexpr size_t kNumbers = 64;
uint64_t state = 4711;
volatile char sink = 0;
std::chrono::milliseconds length{3};

bool random_bit() {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 63 != 0;
}

template <size_t number>
[[gnu::noinline]] void last() {
  const auto end = Clock::now() + length;
  while (Clock::now() < end) {
  }
}

[[gnu::noinline]] void other(unsigned left, Last last);

[[gnu::noinline]] void one(unsigned left, Last last) {
  volatile char frame[256];
  frame[0] = 1;
  left == 0 ? last() : random_bit() ? one(left - 1, last) : other(left - 1, last);
  sink = frame[0];  // no tail call
}

[[gnu::noinline]] void other(unsigned left, Last last) {
  volatile char frame[256];
  frame[0] = 2;
  left == 0 ? last() : random_bit() ? one(left - 1, last) : other(left - 1, last);
  sink = frame[0];
}

template <size_t number>
[[gnu::noinline]] void first(unsigned calls) {
  one(calls, last<number>);
  asm volatile("");  // no tail call
}

template <size_t... numbers>
constexpr auto make_firsts(std::index_sequence<numbers...>) {
  return std::array{first<numbers>...};
}

}  // namespace

int main(int argc, char** argv) {
  const auto end = Clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 3);
  const unsigned calls = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 400;
  if (argc > 3) length = std::chrono::milliseconds(std::atoi(argv[3]));
  const size_t paths = argc > 4 ? static_cast<size_t>(std::atoi(argv[4])) : 0;
  const auto firsts = make_firsts(std::make_index_sequence<kNumbers>());
  for (size_t i = 0; Clock::now() < end; ++i) {
    const size_t number = i % (paths == 0 ? kNumbers : std::min(paths, kNumbers));
    if (paths != 0) state = number * 4711;
    firsts[number](calls);
  }
  return 0;
}
