// A library that is mapped in this process: dladdr() is the second opinion.
#include "support/catch2.h"
#include "symbols/symbol_names.h"

#include <algorithm>
#include <cstdlib>
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
                                    "strtoul", "strtok_r", "malloc",  "pthread_create"};
  link_map* map = nullptr;
  Dl_info info{};
  REQUIRE(dladdr1(reinterpret_cast<void*>(&std::abort), &info, reinterpret_cast<void**>(&map),
                  RTLD_DL_LINKMAP) != 0);
  const MemoryByteSource file(whole_file(info.dli_fname));
  const auto layout = elf::read_layout(file);
  REQUIRE(layout);

  std::vector<LinkAddress> addresses;
  for (const char* name : kFunctions) {
    const void* found = dlsym(RTLD_DEFAULT, name);
    REQUIRE(found != nullptr);
    // A byte behind the entry, as a sample would have it.
    addresses.push_back({reinterpret_cast<uint64_t>(found) + 1 - map->l_addr});
  }
  std::sort(addresses.begin(), addresses.end());
  const auto names = symbols::names_at(file, *layout, addresses);
  for (size_t i = 0; i < addresses.size(); ++i) {
    REQUIRE(names[i]);
    INFO(*names[i]);  // perhaps an alias: what counts is where it leads
    const void* found = dlsym(RTLD_DEFAULT, names[i]->c_str());
    CHECK(reinterpret_cast<uint64_t>(found) + 1 - map->l_addr == addresses[i].value);
  }
}
