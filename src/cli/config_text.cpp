#include "cli/config_text.h"

#include "base/ascii.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // Windows editors begin files with it
constexpr std::string_view kBlank = " \t";
constexpr size_t kMaxName_bytes = 64;  // no option has so many; names are quoted in messages

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == '\x7f';
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName_bytes &&
         std::all_of(text.begin(), text.end(), is_name_character);
}

// Up to a '#' at the beginning or behind a blank: "v1#2" is a value.
std::string_view without_comment(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#' && (i == 0 || kBlank.find(text[i - 1]) != kBlank.npos)) {
      return text.substr(0, i);
    }
  }
  return text;
}

// What stands behind the '=' of a line, read from left to right.
class ValueReader {
 public:
  explicit ValueReader(std::string_view text) : rest_(trimmed(text)) {}

  // Nothing if `problem()` says why.
  std::optional<std::vector<std::string>> read() {
    std::vector<std::string> values;
    if (is_at('[')) {
      read_list(values);
    } else {
      values.push_back(is_at_quote() ? read_quoted() : take_bare(rest_.size()));
    }
    if (!trimmed(without_comment(rest_)).empty()) refuse("something stands behind the value");
    if (!problem_.empty()) return {};
    return values;
  }
  const std::string& problem() const { return problem_; }

 private:
  bool is_at(char c) const { return rest_.starts_with(c); }
  bool is_at_quote() const { return is_at('"') || is_at('\''); }
  void skip(size_t count) { rest_.remove_prefix(count); }
  void skip_blanks() { skip(std::min(rest_.find_first_not_of(kBlank), rest_.size())); }
  // The first one counts; there is nothing more to read.
  void refuse(const char* problem) {
    if (problem_.empty()) problem_ = problem;
    rest_ = {};
  }

  // At most `size` bytes.
  std::string take_bare(size_t size) {
    const std::string_view text = without_comment(rest_.substr(0, size));
    skip(text.size());
    return std::string(trimmed(text));
  }

  std::string read_quoted() {
    const char quote = rest_.front();
    std::string value;
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == quote) {
        skip(i + 1);
        return value;
      }
      if (rest_[i] == '\\' && quote == '"') {
        ++i;
        if (i == rest_.size() || (rest_[i] != '"' && rest_[i] != '\\')) {
          refuse("behind a \\ in double quotes stands neither \" nor \\ (single quotes take all)");
          return {};
        }
      }
      value += rest_[i];
    }
    refuse("the quotes are not closed");
    return {};
  }

  void read_list(std::vector<std::string>& values) {
    for (skip(1); problem_.empty();) {
      skip_blanks();
      if (is_at(']')) return skip(1);
      values.push_back(is_at_quote()
                           ? read_quoted()
                           : take_bare(std::min(rest_.find_first_of(",]"), rest_.size())));
      skip_blanks();
      if (is_at(',')) {
        skip(1);
      } else if (!is_at(']')) {
        refuse("a list ends in ] on the same line, with commas between its values");
      }
    }
  }

  std::string_view rest_;
  std::string problem_;
};

class ConfigReader {
 public:
  explicit ConfigReader(const std::string& file_name) : file_name_(file_name) {}

  Result<std::vector<ConfigSetting>> read(std::string_view text) {
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      if (auto ok = read_line(trimmed(text.substr(0, end))); !ok) {
        return tl::unexpected(ok.error());
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return std::move(settings_);
  }

 private:
  tl::unexpected<Error> malformed(std::string_view problem) const {
    return fail(ErrorCode::Malformed, fmt::format("{}:{}: {}", file_name_, line_, problem));
  }

  Result<void> read_line(std::string_view line) {
    if (line.empty() || line.front() == '#' || line.front() == ';') return {};
    if (std::any_of(line.begin(), line.end(), is_control)) {
      return malformed("has a control character");
    }
    return line.front() == '[' ? read_section(line) : read_setting(line);
  }

  Result<void> read_section(std::string_view line) {
    const size_t end = line.find(']');
    const bool is_whole =
        end != line.npos && trimmed(without_comment(line.substr(end + 1))).empty();
    const std::string_view name = trimmed(line.substr(1, end - 1));
    if (!is_whole || !is_name(name)) return malformed("is no [section]");
    section_ = name;
    return {};
  }

  Result<void> read_setting(std::string_view line) {
    const size_t equals = line.find('=');
    const std::string_view name = trimmed(line.substr(0, equals));
    if (equals == line.npos || !is_name(name)) {
      return malformed("is no 'name = value' (a flag's value is true or false)");
    }
    const auto [first, is_new] = lines_.try_emplace({section_, std::string(name)}, line_);
    if (!is_new) {
      return malformed(fmt::format("'{}' has a value already, in line {}", name, first->second));
    }
    ValueReader reader(line.substr(equals + 1));
    auto values = reader.read();
    if (!values) return malformed(fmt::format("'{}': {}", name, reader.problem()));
    settings_.push_back({section_, std::string(name), std::move(*values), line_});
    return {};
  }

  const std::string& file_name_;
  size_t line_ = 0;
  std::string section_;
  std::vector<ConfigSetting> settings_;
  std::map<std::pair<std::string, std::string>, size_t> lines_;  // of section and name
};

}  // namespace

Result<std::vector<ConfigSetting>> read_config(std::string_view text,
                                               const std::string& file_name) {
  return ConfigReader(file_name).read(text);
}

}  // namespace sentry_prof::cli
