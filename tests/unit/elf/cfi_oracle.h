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
  std::string skipped;  // why nothing was compared, if so: libdw has nothing
};

enum class OracleSection { EhFrame, DebugFrame };

// Counts all FDEs, and compares the rows of every `stride`-th. What we cannot read but libdw can is
// a difference.
OracleResult compare_with_libdw(const std::string& path, OracleSection section, unsigned stride);

// Holds what Go's runtime knows of an image's functions against its .debug_frame, as libdw reads
// it: the CFA of each row, but of functions for which the table says that their caller is
// elsewhere.
OracleResult compare_go_functions(const std::string& path);

}  // namespace sentry_prof::elf_test
