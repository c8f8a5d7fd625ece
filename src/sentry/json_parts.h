// What V1 and V2 have in common.
#pragma once

#include "base/json_writer.h"
#include "sentry_prof/profile.h"

#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

namespace sentry_prof::sentry {

// "debug_meta": {"images": [...]}. Source: Debug Meta Interface.
void write_debug_meta(JsonWriter& json, const Profile& profile);

// "stacks", "frames" and "thread_metadata" of the profile object.
void write_stacks(JsonWriter& json, const Profile& profile);
void write_frames(JsonWriter& json, const Profile& profile);
void write_thread_metadata(JsonWriter& json, const Profile& profile);

// About how long the JSON becomes, so that it is allocated once.
size_t expected_json_bytes(const Profile& profile);

// A few short pieces put together on the stack. Samples and stacks are most of a file: they are
// written without looking at each character. Capacity: the longest sample (98 bytes), or sixteen
// numbers of ten digits, and their commas.
class ShortText {
 public:
  static constexpr size_t kCapacity = 192;

  ShortText& text(std::string_view piece) {
    std::memcpy(end_, piece.data(), piece.size());
    end_ += piece.size();
    return *this;
  }
  ShortText& number(uint64_t value) {
    end_ = std::to_chars(end_, buffer_ + sizeof(buffer_), value).ptr;
    return *this;
  }
  ShortText& six_digits(uint64_t below_a_million) {
    for (int i = 5; i >= 0; --i, below_a_million /= 10) {
      end_[i] = static_cast<char>('0' + below_a_million % 10);
    }
    end_ += 6;
    return *this;
  }
  std::string_view view() const { return {buffer_, static_cast<size_t>(end_ - buffer_)}; }

 private:
  char buffer_[kCapacity];
  char* end_ = buffer_;
};

}  // namespace sentry_prof::sentry
