// Where a walk through a JSON text stands, as a JSON pointer (RFC 6901) when one is asked for.
#pragma once

#include "base/json_reader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace sentry_prof::sentry {

// Pushing costs a few stores; text is put together only by pointer().
class JsonPath {
 public:
  // Deeper than any field table. What is pushed beyond is counted but not told.
  static constexpr size_t kMaxSteps = 16;

  void push_key(const JsonString& key) {
    Step& step = next();
    step.key = key;
    step.is_index = false;
  }
  void push_index(size_t index) {
    Step& step = next();
    step.index = index;
    step.is_index = true;
  }
  void pop() { --count_; }

  // Keys that are longer than 200 bytes are cut off.
  std::string pointer() const;

 private:
  struct Step {
    JsonString key;
    size_t index = 0;
    bool is_index = false;
  };

  // Those that are too deep share the last one, which is never told.
  Step& next() { return steps_[std::min(count_++, kMaxSteps)]; }

  std::array<Step, kMaxSteps + 1> steps_;
  size_t count_ = 0;
};

// At most `limit` bytes of it, and no half character at the end. Must be valid UTF-8.
std::string_view clipped(std::string_view text, size_t limit);

}  // namespace sentry_prof::sentry
