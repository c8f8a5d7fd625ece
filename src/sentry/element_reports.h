// Problems of elements of one array of a profile: gathered by index, located all at once by one
// look at the text.
#pragma once

#include "sentry/problem_list.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::sentry {

class ElementReports {
 public:
  // The array's '[' stands at `array_offset` of `text`; `pointer` leads to it.
  ElementReports(std::string_view text, size_t array_offset, std::string_view pointer,
                 ProblemList& problems)
      : text_(text), array_offset_(array_offset), pointer_(pointer), problems_(problems) {}

  // Will one more be told in words? Counts it if not.
  bool takes(std::string_view rule);
  // Of element `index` and, unless that is empty, of its member. Only after takes().
  void add(std::string_view rule, size_t index, std::string_view member, std::string message);
  // Of the array.
  void add_whole(std::string_view rule, std::string message);

  // Locates what was added and hands it on. Until then nothing is counted: the list would fill up
  // with what has no words.
  void report() &&;

 private:
  struct Pending {
    std::string_view rule;
    size_t index;
    std::string_view member;
    std::string message;
  };

  struct Counts {
    std::string_view rule;
    uint32_t pending = 0;
    uint64_t unlisted = 0;
  };

  Counts& counts_of(std::string_view rule);

  std::string_view text_;
  size_t array_offset_;
  std::string_view pointer_;
  ProblemList& problems_;
  std::vector<Pending> pending_;
  std::vector<Counts> counts_;
};

}  // namespace sentry_prof::sentry
