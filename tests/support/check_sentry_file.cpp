// check_sentry_file FILE...: prints what is wrong with each Sentry profile; 0 if nothing is, 1 if
// something is, 2 if a file cannot be read.
#include "support/sentry_checker.h"

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

using namespace sentry_prof::testing;

namespace {

// True if the file is without problems.
bool check_file(const std::string& path, const std::string& text) {
  const CheckReport report = check_sentry_profile(text, kind_of(text));
  for (const std::string& problem : report.problems) std::cout << path << ": " << problem << '\n';
  if (!report.is_accepted) std::cout << path << ": refused: " << report.reason << '\n';
  return report.is_accepted && report.problems.empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: check_sentry_file FILE...\n";
    return 2;
  }
  bool all_good = true;
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file) {
      std::cerr << argv[i] << ": cannot be read\n";
      return 2;
    }
    all_good = check_file(argv[i], text) && all_good;
  }
  return all_good ? 0 : 1;
}
