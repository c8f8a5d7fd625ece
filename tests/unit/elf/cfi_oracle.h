// Holds our rows against libdw's, for all FDEs of a file: the oracle of the CFI tests.
#pragma once

#include <cstdint>
#include <string>

namespace sentry_prof::elf_test {

struct OracleResult {
  uint64_t fdes = 0;         // compared, each row of each
  uint64_t rows = 0;         // two addresses of each were looked up
  uint64_t differences = 0;  // rows
  std::string first_difference;
  std::string skipped;  // why nothing was compared, if so
};

enum class OracleSection { EhFrame, DebugFrame };

// Every `stride`-th FDE.
OracleResult compare_with_libdw(const std::string& path, OracleSection section, unsigned stride);

}  // namespace sentry_prof::elf_test
