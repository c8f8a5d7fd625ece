// What a server has asked us to hold back, and until when.
//
// Source: Sentry's developer documentation, "Rate Limiting". Headers count whatever the status of
// their answer. Time is a monotonic clock of the caller's; the wall clock only serves dates.
#pragma once

#include "upload/http.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sentry_prof::upload {

// Of data, as the server limits it. A chunk of a platform other than cocoa, android and javascript
// is a ProfileChunk.
enum class Category : uint8_t { Profile, ProfileChunk, ProfileChunkUi, Transaction };
inline constexpr size_t kCategoryCount = 4;

// A set of categories.
class Categories {
 public:
  constexpr Categories() = default;
  constexpr Categories(Category category) : bits_(bit(category)) {}
  static constexpr Categories all() {
    Categories result;
    result.bits_ = (1U << kCategoryCount) - 1;
    return result;
  }
  constexpr bool has(Category category) const { return (bits_ & bit(category)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr Categories operator|(Categories other) const {
    other.bits_ |= bits_;
    return other;
  }
  constexpr bool operator==(const Categories&) const = default;

 private:
  static constexpr uint32_t bit(Category category) { return 1U << static_cast<unsigned>(category); }
  uint32_t bits_ = 0;
};
constexpr Categories operator|(Category a, Category b) { return Categories(a) | Categories(b); }

class RateLimits {
 public:
  // A server names a handful; the rest of a longer header is not read.
  static constexpr size_t kMaxEntries = 16;
  // Nobody waits longer than a day for a server that may have meant milliseconds.
  static constexpr uint64_t kLongest_s = 24 * 60 * 60;
  // What 429 means when it does not say how long.
  static constexpr uint64_t kDefault_s = 60;

  // Takes in what an answer says. X-Sentry-Rate-Limits wins over Retry-After, which holds for all
  // categories; 429 with neither, or only with what cannot be read, holds for all for 60 s. Of
  // several limits of one category the latest end counts.
  void update(const HttpReply& reply, uint64_t now_ns, int64_t unix_now_s);

  // How long data of these categories must wait; 0: not at all.
  uint64_t remaining_ns(Categories categories, uint64_t now_ns) const;

 private:
  bool take_rate_limits(std::string_view header, uint64_t now_ns);
  bool take_retry_after(const HttpReply& reply, uint64_t now_ns, int64_t unix_now_s);
  void limit(Categories categories, uint64_t seconds, uint64_t now_ns);

  std::array<uint64_t, kCategoryCount> end_ns_{};
};

}  // namespace sentry_prof::upload
