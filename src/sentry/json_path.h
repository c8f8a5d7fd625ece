// Where a walk through a JSON text stands, as a JSON pointer (RFC 6901) when one is asked for.
#pragma once

#include "base/json_reader.h"

#include <array>
#include <cstddef>
#include <string>

namespace sentry_prof::sentry {

// Pushing costs two stores; text is put together only by pointer().
class JsonPath {
 public:
  // Deeper than any field table. What is pushed beyond is counted but not told.
  static constexpr size_t kMaxSteps = 16;

  void push_key(const JsonString& key) { push({key, 0, false}); }
  void push_index(size_t index) { push({{}, index, true}); }
  void pop() { --count_; }

  // Keys that are longer than 200 bytes are cut off.
  std::string pointer() const;

 private:
  struct Step {
    JsonString key;
    size_t index = 0;
    bool is_index = false;
  };

  void push(const Step& step) {
    if (count_ < kMaxSteps) steps_[count_] = step;
    ++count_;
  }

  std::array<Step, kMaxSteps> steps_;
  size_t count_ = 0;
};

// At most `limit` bytes of it, and no half character at the end. Must be valid UTF-8.
std::string_view clipped(std::string_view text, size_t limit);

}  // namespace sentry_prof::sentry
