// The files below tests/data.
#pragma once

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace sentry_prof::testing {

inline std::string read_whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string read_test_file(const std::string& name) {
  return read_whole_file(std::string(SENTRY_PROF_TEST_DATA) + "/" + name);
}

}  // namespace sentry_prof::testing
