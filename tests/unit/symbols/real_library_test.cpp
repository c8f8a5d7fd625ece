// A library that is mapped in this process: dlsym() is the second opinion.
#include "support/catch2.h"
#include "symbols/symbol_names.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include <dlfcn.h>
#include <link.h>

using namespace sentry_prof;

namespace {

std::vector<std::byte> whole_file(const char* path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("names_at names functions of the C library where the dynamic linker finds them") {
  const char* const kFunctions[] = {"qsort_r", "getenv",   "fnmatch", "glob_pattern_p",
                                    "strtoul", "strtok_r", "malloc",  "pthread_create",
                                    "free",    "calloc",   "poll",    "pread"};
  // By its own handle: a sanitizer puts functions of its own in front of some of these.
  void* const library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  link_map* map = nullptr;
  REQUIRE(dlinfo(library, RTLD_DI_LINKMAP, &map) == 0);
  const MemoryByteSource file(whole_file(map->l_name));
  const auto layout = elf::read_layout(file);
  REQUIRE(layout);

  std::vector<LinkAddress> addresses;
  for (const char* name : kFunctions) {
    const void* found = dlsym(library, name);
    REQUIRE(found != nullptr);
    // A byte behind the entry, as a sample would have it.
    addresses.push_back({reinterpret_cast<uint64_t>(found) + 1 - map->l_addr});
  }
  std::sort(addresses.begin(), addresses.end());
  symbols::SymbolBudget budget;
  const auto names = symbols::names_at(file, *layout, addresses, budget);
  for (size_t i = 0; i < addresses.size(); ++i) {
    REQUIRE(names[i]);
    INFO(*names[i]);  // perhaps an alias: what counts is where it leads
    const void* found = dlsym(library, names[i]->c_str());
    CHECK(reinterpret_cast<uint64_t>(found) + 1 - map->l_addr == addresses[i].value);
  }
  for (const char* plain : {"malloc", "free", "calloc", "poll", "pread"}) {
    INFO(plain);
    CHECK(std::count(names.begin(), names.end(), plain) == 1);
  }
}
