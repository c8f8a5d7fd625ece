#include "recorder/executable_name.h"

#include "os/paths.h"
#include "support/catch2.h"
#include "unit/os/scratch.h"

#include <filesystem>

using namespace sentry_prof;
using recorder::release_part;

namespace {

std::optional<std::string> executable_name(const std::string& file, const std::string& comm) {
  return recorder::executable_name(
      file, comm, [&](const std::string& link) { return os::is_same_file(link, file); });
}

}  // namespace

TEST_CASE("A program is called as the link it was started by, if that leads to its file") {
  const test::ScratchDirectory directory;
  const std::string file = directory / "redis-check-rdb";
  test::write_text(file, "");
  test::write_text(directory / "other", "");
  std::filesystem::create_symlink("redis-check-rdb", directory / "redis-server");
  CHECK(executable_name(file, "redis-server") == "redis-server");
  CHECK(executable_name(file, "redis-check-rdb") == "redis-check-rdb");
  CHECK(executable_name(file, "other") == "redis-check-rdb");
  CHECK(executable_name(file, "MainThread") == "redis-check-rdb");
  CHECK(executable_name(file, "../redis-server") == "redis-check-rdb");
  CHECK(executable_name(file, "") == "redis-check-rdb");
  CHECK(executable_name(directory / "gone", "redis-server") == "gone");
}

TEST_CASE("What a program is called is not known where nobody says which file its link leads to") {
  const auto silent = [](const std::string&) -> std::optional<bool> { return std::nullopt; };
  CHECK(recorder::executable_name("/bin/python3.11", "python3", silent) == std::nullopt);
  CHECK(recorder::executable_name("/bin/python3.11", "", silent) == "python3.11");
}

TEST_CASE("A file's name becomes part of a release that Sentry takes") {
  CHECK(release_part("redis-server") == "redis-server");
  CHECK(release_part("a\\b\nc\x7f") == "a_b_c_");
  CHECK(release_part(std::string(255, 'x')).size() <= 180);
}
