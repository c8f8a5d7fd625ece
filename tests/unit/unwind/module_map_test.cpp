#include "unwind/module_map.h"

#include "support/catch2.h"

#include <tuple>

using namespace sentry_prof;
using namespace sentry_prof::unwind;

namespace {

using Range = std::tuple<uint64_t, uint64_t, ImageId>;

Module module(uint64_t begin, uint64_t end, ImageId image) {
  return {.begin = {begin}, .end = {end}, .bias = {begin - 0x1000}, .image = image};
}

std::vector<Range> ranges(const ModuleMap& map) {
  std::vector<Range> result;
  for (const Module& m : map.modules()) result.emplace_back(m.begin.value, m.end.value, m.image);
  return result;
}

}  // namespace

TEST_CASE("ModuleMap finds the module that holds an address, end exclusive") {
  ModuleMap map;
  map.insert(module(0x3000, 0x4000, 3));
  map.insert(module(0x1000, 0x2000, 1));
  CHECK(map.find({0xfff}) == nullptr);
  REQUIRE(map.find({0x1000}) != nullptr);
  CHECK(map.find({0x1000})->image == 1);
  CHECK(map.find({0x1fff})->image == 1);
  CHECK(map.find({0x2000}) == nullptr);
  CHECK(map.find({0x3fff})->image == 3);
  CHECK(map.find({0x4000}) == nullptr);
}

TEST_CASE("ModuleMap keeps neighbours that only touch") {
  ModuleMap map;
  map.insert(module(0x1000, 0x2000, 1));
  map.insert(module(0x3000, 0x4000, 3));
  map.insert(module(0x2000, 0x3000, 2));
  CHECK(ranges(map) ==
        std::vector<Range>{{0x1000, 0x2000, 1}, {0x2000, 0x3000, 2}, {0x3000, 0x4000, 3}});
}

TEST_CASE("ModuleMap splits a module that a new one falls into, both pieces keep their bias") {
  ModuleMap map;
  map.insert(module(0x1000, 0x9000, 1));
  map.insert(module(0x3000, 0x4000, 2));
  CHECK(ranges(map) ==
        std::vector<Range>{{0x1000, 0x3000, 1}, {0x3000, 0x4000, 2}, {0x4000, 0x9000, 1}});
  CHECK(map.modules()[0].bias.value == 0);
  CHECK(map.modules()[2].bias.value == 0);
}

TEST_CASE("ModuleMap cuts what sticks out on either side and drops what lies under") {
  ModuleMap map;
  map.insert(module(0x1000, 0x3000, 1));
  map.insert(module(0x4000, 0x5000, 2));
  map.insert(module(0x6000, 0x8000, 3));
  map.insert(module(0x2000, 0x7000, 4));
  CHECK(ranges(map) ==
        std::vector<Range>{{0x1000, 0x2000, 1}, {0x2000, 0x7000, 4}, {0x7000, 0x8000, 3}});
}

TEST_CASE("ModuleMap replaces a module of the same range") {
  ModuleMap map;
  map.insert(module(0x1000, 0x2000, 1));
  map.insert(module(0x1000, 0x2000, 2));
  CHECK(ranges(map) == std::vector<Range>{{0x1000, 0x2000, 2}});
}

TEST_CASE("ModuleMap ignores an empty or reversed range") {
  ModuleMap map;
  map.insert(module(0x1000, 0x2000, 1));
  map.insert(module(0x1800, 0x1800, 2));
  map.insert(module(0x1900, 0x1100, 3));
  CHECK(ranges(map) == std::vector<Range>{{0x1000, 0x2000, 1}});
}

TEST_CASE("ModuleMap holds a module at the top of the address space") {
  ModuleMap map;
  map.insert(module(0xffffffffff600000, 0xffffffffff601000, 1));
  REQUIRE(map.find({0xffffffffff600800}) != nullptr);
  CHECK(map.find({UINT64_MAX}) == nullptr);
}
