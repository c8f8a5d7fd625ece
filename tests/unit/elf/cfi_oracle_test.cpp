// Every row of every FDE of the system's libraries, and of programs that have .debug_frame only, is
// what libdw makes of it.
#include "cfi_oracle.h"

#include "support/catch2.h"
#include "support/skips.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string_view>
#include <vector>

using namespace sentry_prof::elf_test;
namespace fs = std::filesystem;

namespace {

constexpr size_t kFiles = 40;
constexpr uint64_t kLargeFile_bytes = 40 << 20;  // libLLVM and its like: a sample of their FDEs

std::vector<fs::path> library_directories() {
  std::vector<fs::path> result;
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"}) {
    if (fs::is_directory(path)) result.emplace_back(path);
  }
  return result;
}

// Each file once, though it may have several names.
std::vector<fs::path> files_in(const fs::path& directory) {
  std::set<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().filename().string().find(".so") == std::string::npos) continue;
    const fs::path real = fs::canonical(entry.path(), error);
    if (!error && fs::is_regular_file(real, error)) files.insert(real);
  }
  return {files.begin(), files.end()};
}

bool starts_with_any(const fs::path& path, const std::vector<std::string_view>& prefixes) {
  const std::string name = path.filename().string();
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Those with hand-written CFI, much C++, Rust or odd tables first, then others up to kFiles.
std::vector<fs::path> system_files() {
  const std::vector<std::string_view> wanted = {
      "libc.so",   "libc-",     "ld-linux",  "libm.so",    "libm-",   "libstdc++", "libgcc_s",
      "libcrypto", "libssl",    "libpython", "libLLVM",    "libgmp",  "libz.so",   "libz-",
      "liblzma",   "libzstd",   "libelf",    "libdw",      "libcurl", "libgnutls", "libnettle",
      "libperl",   "libsqlite", "libbfd",    "libopcodes", "libasan"};
  // libgcrypt 1.10 names a CFA register behind a CFA expression, where libdw gives up.
  const std::vector<std::string_view> unwanted = {"libgcrypt"};
  std::vector<fs::path> result;
  for (const char* path : {"/usr/bin/bash", "/usr/bin/perl", "/usr/bin/gdb", "/usr/bin/git"}) {
    if (fs::exists(path)) result.push_back(fs::canonical(path));
  }
  std::vector<fs::path> others;
  for (const fs::path& directory : library_directories()) {
    for (const fs::path& file : files_in(directory)) {
      if (starts_with_any(file, unwanted)) continue;
      (starts_with_any(file, wanted) ? result : others).push_back(file);
    }
  }
  for (size_t i = 0; i < others.size() && result.size() < kFiles; ++i) result.push_back(others[i]);
  return result;
}

}  // namespace

TEST_CASE("rows are libdw's for the FDEs of at least 20 system libraries") {
  size_t files = 0;
  uint64_t fdes = 0;
  uint64_t rows = 0;
  for (const fs::path& file : system_files()) {
    const unsigned stride = fs::file_size(file) > kLargeFile_bytes ? 16 : 1;
    const OracleResult result = compare_with_libdw(file.string(), OracleSection::EhFrame, stride);
    if (!result.skipped.empty()) continue;
    CAPTURE(file.string(), result.first_difference);
    CHECK(result.differences == 0);
    if (result.fdes == 0) continue;
    ++files;
    fdes += result.fdes;
    rows += result.rows;
  }
  std::printf("compared with libdw: %zu files, %llu FDEs, %llu rows\n", files,
              static_cast<unsigned long long>(fdes), static_cast<unsigned long long>(rows));
  CHECK(files >= 20);
  CHECK(fdes >= 20'000);
  CHECK(rows >= 150'000);
}

// The C and C++ libraries of Debian's cross compiler: on x86-64, too.
TEST_CASE("rows are libdw's for the FDEs of aarch64's libraries") {
  const fs::path directory = "/usr/aarch64-linux-gnu/lib";
  if (!fs::is_directory(directory)) {
    sentry_prof::testing::note_optional_skip("no " + directory.string() +
                                             " (libstdc++6-arm64-cross)");
    return;
  }
  size_t files = 0;
  uint64_t rows = 0;
  for (const fs::path& file : files_in(directory)) {
    const OracleResult result = compare_with_libdw(file.string(), OracleSection::EhFrame, 1);
    if (!result.skipped.empty()) continue;
    CAPTURE(file.string(), result.first_difference);
    CHECK(result.differences == 0);
    files += result.fdes > 0 ? 1 : 0;
    rows += result.rows;
  }
  std::printf("compared with libdw, aarch64: %zu files, %llu rows\n", files,
              static_cast<unsigned long long>(rows));
  CHECK(files >= 5);
  CHECK(rows >= 50'000);
}

TEST_CASE("rows are libdw's for the FDEs of .debug_frame") {
  for (const char* path : {DEBUG_FRAME_FIXTURES}) {
    const OracleResult result = compare_with_libdw(path, OracleSection::DebugFrame, 1);
    CAPTURE(path, result.skipped, result.first_difference);
    CHECK(result.differences == 0);
    CHECK(result.fdes >= 5);
    CHECK(result.rows >= 20);
    std::printf("compared with libdw, .debug_frame: %llu FDEs, %llu rows\n",
                static_cast<unsigned long long>(result.fdes),
                static_cast<unsigned long long>(result.rows));
  }
}
