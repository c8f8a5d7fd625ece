// The cases in tests/data/validate: texts that break a rule, and texts that just do not.
#pragma once

#include "test_files.h"

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace sentry_prof::testing {

struct RuleCase {
  std::string rule;
  std::string breaks;
  std::string holds;
  // Of `breaks`: where the rule is told, how severe it is against both books, and the server's
  // verdict on the bytes: "ok", a reason or "HTTP 400".
  std::string pointer;
  uint32_t line = 0;
  uint32_t column = 0;
  std::string severity;
  std::string server;
  size_t table_line = 0;
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

// "$LENGTH", "$LENGTH+1", "$LENGTH-1" in an envelope: the bytes of the next line, so many more or
// less.
inline std::string with_lengths(const std::string& envelope) {
  const std::string mark = "$LENGTH";
  std::vector<std::string> lines = split(envelope, '\n');
  std::string result;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (const size_t at = lines[i].find(mark); at != std::string::npos) {
      const std::string behind = lines[i].substr(at + mark.size());
      const bool has_offset = behind[0] == '+' || behind[0] == '-';
      const int offset = has_offset ? std::stoi(behind.substr(0, 2)) : 0;
      const size_t length = lines.at(i + 1).size() + static_cast<size_t>(offset);
      lines[i] =
          lines[i].substr(0, at) + std::to_string(length) + behind.substr(has_offset ? 2 : 0);
    }
    result += (i == 0 ? "" : "\n") + lines[i];
  }
  return result;
}

// A base document with a piece of it replaced; envelopes are those whose names begin so.
inline std::string make_case(const std::string& base, const std::string& piece,
                             const std::string& by) {
  const bool is_envelope = base.starts_with("envelope");
  const std::string text =
      with_first_replaced(read_test_file("validate/" + base + (is_envelope ? ".txt" : ".json")),
                          resolve_escapes(piece), resolve_escapes(by));
  return is_envelope ? with_lengths(text) : text;
}

inline std::vector<RuleCase> read_rule_cases(const std::string& name) {
  std::istringstream lines(read_test_file(name));
  std::vector<RuleCase> cases;
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const auto columns = split(line, '\t');
    if (columns.size() != 9) throw std::runtime_error("not nine columns: " + line);
    const auto place = split(columns[6], ':');
    cases.push_back({columns[0], make_case(columns[1], columns[2], columns[3]),
                     make_case(columns[1], columns[2], columns[4]), columns[5],
                     static_cast<uint32_t>(std::stoul(place.at(0))),
                     static_cast<uint32_t>(std::stoul(place.at(1))), columns[7], columns[8],
                     number});
  }
  return cases;
}

}  // namespace sentry_prof::testing
