#include "upload/reply_reader.h"

#include "base/ascii.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace sentry_prof::upload {

namespace {

// "HTTP/1.1 200 OK", "HTTP/2 200" -> 200; 0 if there is none.
int status_of(std::string_view status_line) {
  const size_t space = status_line.find(' ');
  if (space == status_line.npos) return 0;
  const std::string_view rest = trimmed(status_line.substr(space)).substr(0, 3);
  int status = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), status);
  const bool is_good = error == std::errc() && end == rest.data() + 3 && status >= 100;
  return is_good ? status : 0;
}

using HeaderMember = std::string HttpReply::*;
struct KnownHeader {
  std::string_view name;
  HeaderMember value;
};
constexpr std::array<KnownHeader, 5> kKnownHeaders = {{
    {"x-sentry-rate-limits", &HttpReply::rate_limits},
    {"retry-after", &HttpReply::retry_after},
    {"date", &HttpReply::date},
    {"x-sentry-error", &HttpReply::sentry_error},
    {"location", &HttpReply::location},
}};

}  // namespace

void ReplyReader::take_head_line(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    *this = ReplyReader();
    reply_.status = status_of(line);
    return;
  }
  if (has_whole_head_) return;  // a trailer, behind the body
  if (trimmed(line).empty()) {
    has_whole_head_ = reply_.status >= 200;
    return;
  }
  const size_t colon = line.find(':');
  if (colon != line.npos) take_header(line.substr(0, colon), trimmed(line.substr(colon + 1)));
}

void ReplyReader::take_header(std::string_view name, std::string_view value) {
  for (const KnownHeader& known : kKnownHeaders) {
    if (!equals_ignoring_case(name, known.name)) continue;
    std::string& kept = reply_.*known.value;
    if (kept.size() + 2 >= kMaxHeaderValue_bytes) return;
    if (!kept.empty()) kept += ", ";
    kept += value.substr(0, kMaxHeaderValue_bytes - kept.size());
  }
}

bool ReplyReader::take_body(std::string_view piece) {
  const size_t room = kMaxReplyBody_bytes - reply_.body.size();
  reply_.body += piece.substr(0, room);
  return piece.size() <= room;
}

}  // namespace sentry_prof::upload
