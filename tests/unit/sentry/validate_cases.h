// The cases in tests/data/validate: texts that break a rule, and texts that just do not.
#pragma once

#include "test_files.h"

#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace sentry_prof::testing {

struct RuleCase {
  std::string rule;
  std::string breaks;
  std::string holds;
  size_t line = 0;
};

// \n, \r, \t and \xHH; other escapes are JSON's.
inline std::string resolve_escapes(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    if (next == 'n' || next == 'r' || next == 't') {
      result += next == 'n' ? '\n' : next == 'r' ? '\r' : '\t';
      ++i;
    } else if (next == 'x') {
      result += static_cast<char>(std::stoi(text.substr(i + 2, 2), nullptr, 16));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

inline std::string with_first_replaced(std::string text, const std::string& piece,
                                       const std::string& by) {
  const size_t at = text.find(piece);
  if (at == text.npos) throw std::runtime_error("not in the text: " + piece);
  return text.replace(at, piece.size(), by);
}

inline std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : line) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

inline std::vector<RuleCase> read_rule_cases(const std::string& name) {
  std::istringstream lines(read_test_file(name));
  std::vector<RuleCase> cases;
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const auto columns = split(line, '\t');
    if (columns.size() != 5) throw std::runtime_error("not five columns: " + line);
    const std::string base = read_test_file("validate/" + columns[1] + ".json");
    const std::string piece = resolve_escapes(columns[2]);
    cases.push_back({columns[0], with_first_replaced(base, piece, resolve_escapes(columns[3])),
                     with_first_replaced(base, piece, resolve_escapes(columns[4])), number});
  }
  return cases;
}

}  // namespace sentry_prof::testing
