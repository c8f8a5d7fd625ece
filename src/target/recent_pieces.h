// What was read last of files that are slow to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace sentry_prof::target {

// The pieces of files that were used last. An ELF file is read in dozens of bytes next to each
// other: its headers ten times, its unwind tables by functions. Any thread may use it.
class RecentPieces {
 public:
  // Enough for the headers and the end of one file, and the places in two others at which walks
  // and names are looked up.
  static constexpr size_t kMostPieces = 16;
  // Of all pieces but a file's last one.
  static constexpr size_t kPiece_bytes = size_t{64} << 10;

  struct Place {
    uint64_t file = 0;   // of add_file()
    uint64_t index = 0;  // of the piece in it
    friend bool operator==(const Place&, const Place&) = default;
  };

  // A number that no other file had.
  uint64_t add_file();
  // Copies from `begin` of the piece on. False, and `out` as it was, unless all of it is kept.
  bool copy(const Place& place, size_t begin, std::span<std::byte> out);
  // Forgets the piece that was used longest ago, if there are too many.
  void keep(const Place& place, std::vector<std::byte> bytes);

 private:
  struct Piece {
    Place place;
    std::vector<std::byte> bytes;
    uint64_t last_use = 0;
  };

  std::mutex mutex_;
  std::vector<Piece> pieces_;
  uint64_t files_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace sentry_prof::target
