#include "upload/rate_limits.h"

#include "base/ascii.h"
#include "base/time_units.h"
#include "upload/http_date.h"

#include <algorithm>
#include <optional>

namespace sentry_prof::upload {

namespace {

constexpr int kTooManyRequests = 429;

// The text before the next `separator`, trimmed; `rest` becomes what follows it.
std::string_view take_field(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view field = rest.substr(0, end);
  rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
  return trimmed(field);
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Seconds, with or without a fraction, which is rounded up; at most kLongest_s.
std::optional<uint64_t> parse_seconds(std::string_view text) {
  std::string_view fraction = text;
  const std::string_view whole = take_field(fraction, '.');
  const bool has_fraction = text.find('.') != text.npos;
  if (!is_digits(whole) || (has_fraction && !is_digits(fraction))) return std::nullopt;
  uint64_t seconds = 0;
  for (const char c : whole) {
    seconds = std::min(seconds * 10 + static_cast<uint64_t>(c - '0'), RateLimits::kLongest_s);
  }
  if (fraction.find_first_not_of('0') != fraction.npos) ++seconds;
  return std::min(seconds, RateLimits::kLongest_s);
}

// Of a category that we do not send: nothing.
Categories category_named(std::string_view name) {
  if (name == "profile") return Category::Profile;
  if (name == "profile_chunk") return Category::ProfileChunk;
  if (name == "profile_chunk_ui") return Category::ProfileChunkUi;
  if (name == "transaction") return Category::Transaction;
  return {};
}

// "profile;transaction"; nothing stands for all.
Categories parse_categories(std::string_view text) {
  if (text.empty()) return Categories::all();
  Categories result;
  while (!text.empty()) result = result | category_named(take_field(text, ';'));
  return result;
}

}  // namespace

void RateLimits::update(const HttpReply& reply, uint64_t now_ns, int64_t unix_now_s) {
  if (take_rate_limits(reply.rate_limits, now_ns)) return;
  if (take_retry_after(reply, now_ns, unix_now_s)) return;
  if (reply.status == kTooManyRequests) limit(Categories::all(), kDefault_s, now_ns);
}

// "60:profile;profile_chunk:organization:reason, 2700::project". False if no entry of it makes
// sense.
bool RateLimits::take_rate_limits(std::string_view header, uint64_t now_ns) {
  bool made_sense = false;
  for (size_t i = 0; i < kMaxEntries && !header.empty(); ++i) {
    std::string_view entry = take_field(header, ',');
    const auto seconds = parse_seconds(take_field(entry, ':'));
    if (!seconds) continue;
    limit(parse_categories(take_field(entry, ':')), *seconds, now_ns);
    made_sense = true;
  }
  return made_sense;
}

// Seconds or a date. The server's own clock, where it tells it, is what its date is held against.
bool RateLimits::take_retry_after(const HttpReply& reply, uint64_t now_ns, int64_t unix_now_s) {
  const std::string_view text = trimmed(reply.retry_after);
  auto seconds = parse_seconds(text);
  if (!seconds) {
    const auto end_s = parse_http_date(text);
    if (!end_s) return false;
    const int64_t reference_s = parse_http_date(trimmed(reply.date)).value_or(unix_now_s);
    seconds = *end_s > reference_s ? static_cast<uint64_t>(*end_s - reference_s) : 0;
  }
  limit(Categories::all(), *seconds, now_ns);
  return true;
}

void RateLimits::limit(Categories categories, uint64_t seconds, uint64_t now_ns) {
  const uint64_t end_ns = now_ns + std::min(seconds, kLongest_s) * kNsPerSecond;
  for (size_t i = 0; i < kCategoryCount; ++i) {
    if (categories.has(static_cast<Category>(i))) end_ns_[i] = std::max(end_ns_[i], end_ns);
  }
}

uint64_t RateLimits::remaining_ns(Categories categories, uint64_t now_ns) const {
  uint64_t remaining = 0;
  for (size_t i = 0; i < kCategoryCount; ++i) {
    if (!categories.has(static_cast<Category>(i)) || end_ns_[i] <= now_ns) continue;
    remaining = std::max(remaining, end_ns_[i] - now_ns);
  }
  return remaining;
}

}  // namespace sentry_prof::upload
