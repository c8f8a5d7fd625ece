#include "profile/finish_chunk.h"
#include "support/catch2.h"

#include <algorithm>
#include <map>
#include <vector>

using sentry_prof::profile::ImagePlacer;

namespace {
constexpr uint64_t kLib = 0x7f0000000000;

// The numbers of the images, by the address of each: two of one address are one.
using Places = std::map<uint64_t, uint32_t>;

// The images [first, last) of one to three pages, all at one address.
void place_crowd(ImagePlacer& placer, uint32_t first, uint32_t last, Places& places) {
  for (uint32_t image = first; image < last; ++image) {
    places[placer.place(image, kLib, (1 + image % 3) * 0x1000)] = image;
  }
}

bool has_overlap(const Places& places) {
  uint64_t end = 0;
  for (const auto& [address, image] : places) {
    if (address < end) return true;
    end = address + (1 + image % 3) * 0x1000;
  }
  return false;
}
}  // namespace

TEST_CASE("An image stays where it was seen, for the whole session") {
  ImagePlacer placer;
  CHECK(placer.place(1, kLib, 0x5000) == kLib);
  CHECK(placer.place(1, kLib + 0x100000, 0x9000) == kLib);
}

TEST_CASE("An image whose pages are taken goes to the next free range above") {
  ImagePlacer placer;
  placer.place(1, kLib, 0x5000);
  placer.place(2, kLib + 0x6000, 0x1000);
  // One page is free between 1 and 2: too small for two pages, enough for one.
  CHECK(placer.place(3, kLib + 0x1000, 0x2000) == kLib + 0x7000);
  CHECK(placer.place(4, kLib, 0x1000) == kLib + 0x5000);
}

TEST_CASE("Neighbours that share no page both stay") {
  ImagePlacer placer;
  placer.place(1, kLib, 0x1000);
  CHECK(placer.place(2, kLib + 0x1000, 0x1000) == kLib + 0x1000);
  CHECK(placer.place(3, kLib - 0x1000, 0x1000) == kLib - 0x1000);
}

TEST_CASE("Images never share a page, and a moved one keeps its offset in the page") {
  ImagePlacer placer;
  CHECK(placer.place(1, kLib + 0x40, 0xf00) == kLib + 0x40);
  CHECK(placer.place(2, kLib + 0xf50, 0x20) == kLib + 0x1f50);
}

TEST_CASE("An image without a size gets a page of its own") {
  ImagePlacer placer;
  CHECK(placer.place(1, kLib, 0) == kLib);
  CHECK(placer.place(2, kLib, 0) == kLib + 0x1000);
}

TEST_CASE("Bogus addresses and sizes are placed without overflow") {
  ImagePlacer placer;
  const uint64_t size = 0x3000;
  std::vector<uint64_t> begins;
  for (uint64_t preferred : {UINT64_MAX, UINT64_MAX - 0x1000, uint64_t{1} << 63, uint64_t{0},
                             (uint64_t{1} << 63) - 0x1000}) {
    const auto image = static_cast<uint32_t>(begins.size());
    begins.push_back(placer.place(image, preferred, size) / 0x1000);
    CHECK(begins.back() * 0x1000 + size <= uint64_t{1} << 63);
  }
  CHECK(placer.place(100, kLib, UINT64_MAX) == kLib);
  CHECK(placer.place(101, kLib, 0x1000) == kLib + ImagePlacer::kMaxPlaced_bytes);
  std::sort(begins.begin(), begins.end());
  for (size_t i = 1; i < begins.size(); ++i) CHECK(begins[i] - begins[i - 1] >= 3);
}

TEST_CASE("When nothing is free above, the search goes on from the bottom") {
  ImagePlacer placer;
  const uint64_t top = (uint64_t{1} << 63) - 0x2000;
  CHECK(placer.place(1, top, 0x2000) == top);
  CHECK(placer.place(2, top, 0x2000) == 0x10000);
  CHECK(placer.place(3, top, 0x1000) == 0x12000);
}

TEST_CASE("The pages of a forgotten image are free again") {
  ImagePlacer placer;
  CHECK(placer.place(1, kLib, 0x2000) == kLib);
  CHECK(placer.place(2, kLib + 0x2000, 0x1000) == kLib + 0x2000);
  placer.forget(1);
  placer.forget(1);
  placer.forget(7);
  CHECK(placer.place(3, kLib + 0x1000, 0x1000) == kLib + 0x1000);
  CHECK(placer.place(2, kLib, 0x1000) == kLib + 0x2000);
  CHECK(placer.place(1, kLib, 0x1000) == kLib);
}

TEST_CASE("All images from a number on are forgotten at once") {
  ImagePlacer placer;
  placer.place(1, kLib, 0x1000);
  placer.place(100, kLib + 0x1000, 0x1000);
  placer.place(101, kLib + 0x2000, 0x1000);
  placer.forget_from(100);
  CHECK(placer.place(102, kLib + 0x1000, 0x2000) == kLib + 0x1000);
  CHECK(placer.place(103, kLib, 0x1000) == kLib + 0x3000);
}

TEST_CASE(
    "A crowd at one address has no overlap: hundreds side by side, the rest from the bottom") {
  constexpr uint32_t kImages = 5000;
  ImagePlacer placer;
  Places places;
  place_crowd(placer, 0, kImages, places);
  CHECK(places.size() == kImages);
  CHECK(!has_overlap(places));
  CHECK(placer.place(200, kLib, 0x1000) == kLib + (66 * 6 + 1 + 2) * 0x1000);
  CHECK(places.begin()->first == 0x10000);
}

TEST_CASE("A crowd far from the first of it takes what was forgotten only where it is free") {
  constexpr uint32_t kImages = 5000;
  ImagePlacer placer;
  Places places;
  place_crowd(placer, 0, kImages, places);
  for (uint32_t image = 0; image < kImages; image += 2) placer.forget(image);
  std::erase_if(places, [](const auto& place) { return place.second % 2 == 0; });
  place_crowd(placer, kImages, 2 * kImages, places);
  CHECK(places.size() == kImages + kImages / 2);
  CHECK(!has_overlap(places));
}
