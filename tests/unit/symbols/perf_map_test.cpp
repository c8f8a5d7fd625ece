#include "symbols/perf_map.h"

#include "support/catch2.h"

#include <fmt/format.h>

using namespace sentry_prof;

namespace {

MemoryByteSource map_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return MemoryByteSource({bytes.begin(), bytes.end()});
}

symbols::PerfMapNames names_in_perf_map(const ByteSource& file,
                                        const std::vector<RuntimeAddress>& addresses) {
  symbols::PerfMapBudget budget;
  return symbols::names_in_perf_map(file, addresses, budget);
}

std::string name_at(std::string_view text, uint64_t address) {
  const std::vector<RuntimeAddress> addresses{{address}};
  return names_in_perf_map(map_of(text), addresses).names.front().value_or("-");
}

}  // namespace

TEST_CASE("A line of a perf map names the addresses from its start to its end") {
  const std::string text = "1000 20 LazyCompile:*leaf /app/a.js:1:14\n1020 8 py::f:/app/b.py\n";
  CHECK(name_at(text, 0xfff) == "-");
  CHECK(name_at(text, 0x1000) == "LazyCompile:*leaf /app/a.js:1:14");
  CHECK(name_at(text, 0x101f) == "LazyCompile:*leaf /app/a.js:1:14");
  CHECK(name_at(text, 0x1020) == "py::f:/app/b.py");
  CHECK(name_at(text, 0x1028) == "-");
}

TEST_CASE("Of two lines for one address the later one counts") {
  CHECK(name_at("1000 100 old\n1080 10 new\n", 0x1085) == "new");
  CHECK(name_at("1000 100 old\n1080 10 new\n", 0x1090) == "old");
  CHECK(name_at("1080 10 old\n1000 100 new\n", 0x1085) == "new");
}

TEST_CASE("Several addresses are named in one pass, each by its own lines") {
  const std::vector<RuntimeAddress> addresses{{0x1000}, {0x1001}, {0x3000}, {0x5000}};
  const auto found = names_in_perf_map(map_of("5000 1 c\n1000 10 a\n3000 1 b\n"), addresses);
  using Names = std::vector<std::optional<std::string>>;
  CHECK(found.names == Names{"a", "a", "b", "c"});
  CHECK(found.bad_lines == 0);
}

TEST_CASE("Lines of another form are counted and passed over") {
  for (const std::string_view bad :
       {"", "1000", "1000 ", "1000 10", "1000 10 ", "1000  10 x", "x 10 y", "1000 y z", "-1 10 x",
        "10000000000000000 10 x", "1000 10000000000000000 x", "1000\t10\tx", " 1000 10 x"}) {
    INFO('"' << bad << '"');
    const std::vector<RuntimeAddress> addresses{{0x1000}};
    const auto found = names_in_perf_map(map_of(fmt::format("{}\n1000 1 good\n", bad)), addresses);
    CHECK(found.bad_lines == 1);
    CHECK(found.names.front() == "good");
  }
}

TEST_CASE(
    "A line that is being written, one at the top of memory and one of no size hold nothing") {
  CHECK(name_at("1000 10 unfinishe", 0x1000) == "-");
  CHECK(name_at("1000 0 nothing\n", 0x1000) == "-");
  CHECK(name_at("fffffffffffffff0 ffffffffffffffff top\n", 0x1000) == "-");
  CHECK(name_at("fffffffffffffff0 ffffffffffffffff top\n", UINT64_MAX) == "top");
}

TEST_CASE("Prefixes and line ends of other tools are taken") {
  CHECK(name_at("0x1000 0x10 name with blanks\r\n", 0x1000) == "name with blanks");
}

TEST_CASE(
    "Names stay whole where the pieces that are read meet, long ones are cut, longer lines bad") {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += fmt::format("{:x} 10 function_{}\n", i * 0x10, i);
  CHECK(text.size() > 4 * 64 * 1024);
  for (const uint64_t i : {0u, 3'333u, 12'345u, 19'999u}) {
    CHECK(name_at(text, i * 0x10) == fmt::format("function_{}", i));
  }
  CHECK(name_at("1000 1 " + std::string(3'000, 'n') + "\n", 0x1000) == std::string(1'024, 'n'));
  const std::vector<RuntimeAddress> addresses{{0x1000}};
  const auto found = names_in_perf_map(
      map_of("1000 1 " + std::string(300'000, 'n') + "\n1000 1 good\n"), addresses);
  CHECK(found.bad_lines == 1);
  CHECK(found.names.front() == "good");
}

TEST_CASE(
    "A map whose lines all hold all addresses is compared within bounds, and said to be cut") {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "0 ffffffffffffffff all\n";
  std::vector<RuntimeAddress> addresses;
  for (uint64_t i = 0; i < 100'000; ++i) addresses.push_back({i});
  const auto found = names_in_perf_map(map_of(text), addresses);
  CHECK(found.names.front() == "all");
  CHECK(found.is_cut);
}

TEST_CASE("Of what the budget does not suffice for the end is read, from a whole line on") {
  const std::string text = "1000 1 first\n2000 1 second\n3000 1 third\n";
  const std::vector<RuntimeAddress> addresses{{0x1000}, {0x2000}, {0x3000}};
  symbols::PerfMapBudget budget{.bytes = 20};
  const auto found = symbols::names_in_perf_map(map_of(text), addresses, budget);
  using Names = std::vector<std::optional<std::string>>;
  CHECK(found.names == Names{std::nullopt, std::nullopt, "third"});
  CHECK(found.is_cut);
  CHECK(found.bad_lines == 0);
  CHECK(budget.bytes == 0);
  budget.bytes = text.size();
  CHECK_FALSE(symbols::names_in_perf_map(map_of(text), addresses, budget).is_cut);
}

TEST_CASE("A map that is no longer there gives no names") {
  class Gone final : public ByteSource {
    uint64_t size_bytes() const override { return 1'000; }
    bool read_at(uint64_t, std::span<std::byte>) const override { return false; }
  };
  const std::vector<RuntimeAddress> addresses{{0x1000}};
  CHECK(names_in_perf_map(Gone(), addresses).names.front() == std::nullopt);
}
