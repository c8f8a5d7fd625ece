#include "target/recent_pieces.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::target {

uint64_t RecentPieces::add_file() {
  const std::lock_guard lock(mutex_);
  return ++files_;
}

bool RecentPieces::copy(const Place& place, size_t begin, std::span<std::byte> out) {
  const std::lock_guard lock(mutex_);
  const auto piece = std::ranges::find(pieces_, place, &Piece::place);
  if (piece == pieces_.end()) return false;
  const size_t size_bytes = piece->bytes.size();
  if (begin > size_bytes || out.size() > size_bytes - begin) return false;
  std::ranges::copy(std::span(piece->bytes).subspan(begin, out.size()), out.begin());
  piece->last_use = ++uses_;
  return true;
}

void RecentPieces::keep(const Place& place, std::vector<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  auto piece = std::ranges::find(pieces_, place, &Piece::place);
  if (piece == pieces_.end() && pieces_.size() < kMostPieces) {
    piece = pieces_.emplace(pieces_.end());
  } else if (piece == pieces_.end()) {
    piece = std::ranges::min_element(pieces_, {}, &Piece::last_use);
  }
  *piece = {place, std::move(bytes), ++uses_};
}

}  // namespace sentry_prof::target
