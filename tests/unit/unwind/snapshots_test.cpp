// Every folder of tests/snapshots: a stored thread of a real program, walked with its real CFI.
#include "support/catch2.h"
#include "support/snapshot.h"

#include <algorithm>
#include <filesystem>

using sentry_prof::test::Snapshot;

namespace {

std::vector<std::filesystem::path> snapshot_folders() {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(SENTRY_PROF_SNAPSHOTS)) {
    if (std::filesystem::exists(entry.path() / "registers.txt")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

TEST_CASE("every stored snapshot walks as it is written down") {
  const auto folders = snapshot_folders();
  REQUIRE(folders.size() >= 15);
  for (const auto& folder : folders) {
    DYNAMIC_SECTION(folder.filename().string()) {
      const Snapshot snapshot(folder);
      CHECK(snapshot.walk() == snapshot.expected());
    }
  }
}
