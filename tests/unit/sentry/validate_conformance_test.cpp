// The server's recorded verdicts on a folder of cases, found through SENTRY_PROF_CONFORMANCE. A
// program of its own, so that a run without the folder is reported as skipped.
#include "sentry_prof/validate.h"
#include "validate_cases.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>

namespace sentry_prof {
namespace {

constexpr int kSkipped = 77;  // Meson's

// "accept", "HTTP 413", "reject profiling_invalid_json"
std::string verdict(const Verdict& relay) {
  if (relay.valid) return "accept ";
  if (relay.http_status != 0) return "HTTP " + std::to_string(relay.http_status) + " ";
  return "reject " + std::string(relay.reason);
}

bool is_as_observed(const std::string& folder, const std::string& line) {
  const auto columns = testing::split(line, '\t');
  if (columns.size() < 4) throw std::runtime_error("fewer than four columns: " + line);
  ValidateOptions options;
  options.against_documents = false;
  const ValidationReport report =
      validate(testing::read_whole_file(folder + "/" + columns[0]), options);
  const std::string expected = columns[2] + " " + columns[3];
  const std::string found = verdict(report.relay);
  if (found == expected) return true;
  std::printf("%s: expected %s, found %s\n", columns[0].c_str(), expected.c_str(), found.c_str());
  for (const Problem& problem : report.problems) {
    std::printf("    %s at %s: %s\n", std::string(problem.rule).c_str(), problem.pointer.c_str(),
                problem.message.c_str());
  }
  return false;
}

int run(const std::string& folder) {
  std::istringstream lines(testing::read_whole_file(folder + "/cases.tsv"));
  std::string line;
  std::getline(lines, line);
  if (line.rfind("file\tkind\trelay\trelay_reason", 0) != 0) {
    std::printf("cases.tsv has other columns than expected: %s\n", line.c_str());
    return 1;
  }
  int cases = 0;
  int agreed = 0;
  for (; std::getline(lines, line); ++cases) agreed += is_as_observed(folder, line) ? 1 : 0;
  std::printf("%d of %d cases as observed\n", agreed, cases);
  return cases > 0 && agreed == cases ? 0 : 1;
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
