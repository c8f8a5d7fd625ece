// The figures that `--summary FILE` wrote.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace simdjson::dom {
class parser;
}

namespace sentry_prof::testing {

class Summary {
 public:
  // Throws std::runtime_error if there is no such JSON file.
  static Summary load(const std::string& path);

  bool has(std::string_view key) const;
  // Keys of the top object; "losses/ring_full" for one further down. Throw if it is not there.
  double number(std::string_view key) const;
  std::string text(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  bool flag(std::string_view key) const;
  double sum_of(std::string_view key) const;  // over the numbers of an object

  // Shares of the walks (or 0 without any) whose end was the thread's root.
  double share_complete() const;
  // Samples taken, in parts of CPU time x frequency.
  double share_of_expected_samples() const;

 private:
  Summary();
  std::shared_ptr<simdjson::dom::parser> parser_;  // owns what was read
};

}  // namespace sentry_prof::testing
