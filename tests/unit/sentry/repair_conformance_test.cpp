// All texts in the folder of observed verdicts, found through SENTRY_PROF_CONFORMANCE, are mended
// soundly. A program of its own, so that a run without the folder is reported as skipped.
#include "repair_properties.h"
#include "test_files.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

namespace sentry_prof {
namespace {

constexpr int kSkipped = 77;  // Meson's

int run(const char* folder) {
  int files = 0;
  int faults = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string fault = testing::repair_fault(testing::read_whole_file(entry.path()));
    ++files;
    if (fault.empty()) continue;
    ++faults;
    std::printf("%s: %s\n", entry.path().c_str(), fault.c_str());
  }
  std::printf("%d files, %d faults\n", files, faults);
  return files > 0 && faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sentry_prof

int main() {
  const char* const folder = std::getenv("SENTRY_PROF_CONFORMANCE");
  if (folder == nullptr || *folder == '\0') {
    std::puts("SKIPPED: SENTRY_PROF_CONFORMANCE does not name the folder with cases.tsv");
    return sentry_prof::kSkipped;
  }
  try {
    return sentry_prof::run(folder);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
