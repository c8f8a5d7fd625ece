// What the parts of a scan have in common: where they stand, and telling problems there.
#pragma once

#include "sentry/json_path.h"
#include "sentry/problem_list.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace sentry_prof::sentry {

class ScanReporter {
 public:
  ScanReporter(std::string_view text, ProblemList& problems) : text_(text), problems_(problems) {}

  JsonPath& path() { return path_; }

  // `message` is called if the problem will be listed: any callable that gives a string. White
  // space at `offset` is skipped.
  template <typename Message>
  void report(std::string_view rule, size_t offset, Message&& message) {
    if (find_rule(rule)->relay == RelayEffect::Refuses) ++refusals_;
    if (!problems_.lists(rule)) {
      problems_.count(rule);
      return;
    }
    const size_t start = std::min(text_.find_first_not_of(" \t\r\n", offset), text_.size());
    problems_.add(rule, path_.pointer(), start, message());
  }

  // Problems so far for which the server would refuse the text.
  uint64_t refusals() const { return refusals_; }

 private:
  std::string_view text_;
  ProblemList& problems_;
  JsonPath path_;
  uint64_t refusals_ = 0;
};

}  // namespace sentry_prof::sentry
