// compare_rows FILE...: every row of every FDE of these files against libdw's, .eh_frame and
// .debug_frame, and what the runtimes of Go's programs know against the latter. A line for each
// file that differs, then the totals. For scripts/compare-rows.
#include "cfi_oracle.h"

#include <cinttypes>
#include <cstdio>

using namespace sentry_prof::elf_test;

namespace {

struct Totals {
  uint64_t files = 0, fdes = 0, rows = 0, differences = 0;
};

void add(const char* path, const OracleResult& result, Totals& totals) {
  if (!result.skipped.empty() || result.rows == 0) return;
  ++totals.files;
  totals.fdes += result.fdes;
  totals.rows += result.rows;
  totals.differences += result.differences;
  if (result.differences == 0) return;
  std::printf("%s: %" PRIu64 " of %" PRIu64 " rows differ, the first: %s\n", path,
              result.differences, result.rows, result.first_difference.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Totals totals;
  for (int i = 1; i < argc; ++i) {
    add(argv[i], compare_with_libdw(argv[i], OracleSection::EhFrame, 1), totals);
    add(argv[i], compare_with_libdw(argv[i], OracleSection::DebugFrame, 1), totals);
    add(argv[i], compare_go_functions(argv[i]), totals);
  }
  std::printf("total %" PRIu64 " sections, %" PRIu64 " FDEs, %" PRIu64 " rows, %" PRIu64
              " differences\n",
              totals.files, totals.fdes, totals.rows, totals.differences);
  return totals.differences == 0 ? 0 : 1;
}
