#include "target/recent_pieces.h"

#include "support/catch2.h"

#include <array>
#include <cstddef>
#include <vector>

using namespace sentry_prof;
using target::RecentPieces;

namespace {

std::vector<std::byte> piece_of(int value) {
  return std::vector<std::byte>(100, static_cast<std::byte>(value));
}

}  // namespace

TEST_CASE("RecentPieces gives what lies inside of a piece, and leaves the rest alone") {
  RecentPieces pieces;
  const uint64_t file = pieces.add_file();
  const uint64_t other = pieces.add_file();
  pieces.keep({file, 2}, piece_of(7));
  std::array<std::byte, 10> out{};
  CHECK(pieces.copy({file, 2}, 90, out));
  CHECK(out.back() == std::byte{7});
  out.fill({});
  CHECK_FALSE(pieces.copy({file, 2}, 91, out));
  CHECK_FALSE(pieces.copy({file, 2}, SIZE_MAX, out));
  CHECK_FALSE(pieces.copy({file, 1}, 0, out));
  CHECK_FALSE(pieces.copy({other, 2}, 0, out));
  CHECK(out == std::array<std::byte, 10>{});
  pieces.keep({file, 2}, piece_of(8));
  CHECK(pieces.copy({file, 2}, 0, out));
  CHECK(out.front() == std::byte{8});
}

TEST_CASE("RecentPieces forgets what was used longest ago, and only that") {
  RecentPieces pieces;
  const uint64_t file = pieces.add_file();
  std::array<std::byte, 1> out{};
  for (uint64_t index = 0; index < RecentPieces::kMostPieces; ++index) {
    pieces.keep({file, index}, piece_of(static_cast<int>(index)));
  }
  CHECK(pieces.copy({file, 0}, 0, out));
  pieces.keep({file, 100}, piece_of(100));
  CHECK_FALSE(pieces.copy({file, 1}, 0, out));
  for (uint64_t index = 0; index < RecentPieces::kMostPieces; ++index) {
    if (index != 1) CHECK(pieces.copy({file, index}, 0, out));
  }
  CHECK(pieces.copy({file, 100}, 0, out));
}
