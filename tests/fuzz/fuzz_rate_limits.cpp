// A server's headers: status, then X-Sentry-Rate-Limits, Retry-After and Date, a line each.
#include "fuzz/require.h"
#include "upload/http_date.h"
#include "upload/outcome.h"
#include "upload/rate_limits.h"
#include "upload/reply_reader.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using namespace sentry_prof::upload;
using sentry_prof::fuzz::require;

namespace {

constexpr uint64_t kNow_ns = 1'000'000'000'000;
constexpr uint64_t kLongest_ns = RateLimits::kLongest_s * 1'000'000'000;

std::string_view take_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  return line;
}

void check_reader(std::string_view text) {
  ReplyReader reader;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    reader.take_head_line(line);
    reader.take_body(line);
  }
  const HttpReply& reply = reader.reply();
  require(reply.body.size() <= kMaxReplyBody_bytes);
  for (const std::string* value : {&reply.rate_limits, &reply.retry_after, &reply.date,
                                   &reply.sentry_error, &reply.location}) {
    require(value->size() <= kMaxHeaderValue_bytes);
  }
  const Outcome outcome = outcome_of(reply);
  require(outcome.detail.size() <= 300 && exit_code(outcome.kind) <= 6);
  require(!sentence(outcome, "host").empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(bytes), size);
  check_reader(rest);
  HttpReply reply;
  reply.status = take_line(rest) == "429" ? 429 : 200;
  reply.rate_limits = take_line(rest);
  reply.retry_after = take_line(rest);
  reply.date = take_line(rest);

  RateLimits limits;
  limits.update(reply, kNow_ns, 1'000'000'000);
  const uint64_t longest = limits.remaining_ns(Categories::all(), kNow_ns);
  require(longest <= kLongest_ns);
  require(limits.remaining_ns(Categories::all(), kNow_ns + kLongest_ns) == 0);
  // A second answer can only make waits longer.
  limits.update(reply, kNow_ns + 1, 1'000'000'000);
  require(limits.remaining_ns(Categories::all(), kNow_ns + 1) + 1 >= longest);
  // Years 0 to 9999.
  const auto date = parse_http_date(reply.retry_after);
  require(!date || (*date >= -62'200'000'000 && *date <= 253'500'000'000));
  return 0;
}
