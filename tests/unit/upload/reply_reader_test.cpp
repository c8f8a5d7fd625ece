#include "upload/reply_reader.h"

#include "support/catch2.h"

#include <string>

using namespace sentry_prof::upload;

namespace {

ReplyReader with_head(std::initializer_list<std::string_view> lines) {
  ReplyReader reader;
  for (const std::string_view line : lines) reader.take_head_line(line);
  return reader;
}

}  // namespace

TEST_CASE("Status and headers are read, names in any case", "[reply_reader]") {
  const ReplyReader reader =
      with_head({"HTTP/1.1 429 Too Many Requests\r\n", "RETRY-after:  30 \r\n",
                 "X-Sentry-Error:a: b\r\n", "no colon\r\n", "\r\n"});
  CHECK(reader.has_whole_head());
  CHECK(reader.reply().status == 429);
  CHECK(reader.reply().retry_after == "30");
  CHECK(reader.reply().sentry_error == "a: b");
  CHECK(with_head({"HTTP/2 200 \r\n", "\r\n"}).reply().status == 200);
}

TEST_CASE("A later answer replaces the one before", "[reply_reader]") {
  ReplyReader reader = with_head({"HTTP/1.1 100 Continue\r\n", "Retry-After: 5\r\n", "\r\n"});
  CHECK_FALSE(reader.has_whole_head());
  reader.take_head_line("HTTP/1.1 200 OK\r\n");
  reader.take_head_line("\r\n");
  CHECK(reader.has_whole_head());
  CHECK(reader.reply().retry_after.empty());
}

TEST_CASE("A head without its end, or without a status, is not whole", "[reply_reader]") {
  CHECK_FALSE(with_head({"HTTP/1.1 200 OK\r\n", "Date: x\r\n"}).has_whole_head());
  for (const char* line :
       {"HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 abc", "HTTP/1.1 20", "HTTP/1.1 -20", "HTTP/1.1 099"}) {
    INFO(line);
    CHECK_FALSE(with_head({line, "\r\n"}).has_whole_head());
  }
}

TEST_CASE("A header that is sent often, or long, stays bounded", "[reply_reader]") {
  ReplyReader reader = with_head({"HTTP/1.1 200 OK\r\n"});
  for (int i = 0; i < 2; ++i) reader.take_head_line("X-Sentry-Rate-Limits: 1::org\r\n");
  CHECK(reader.reply().rate_limits == "1::org, 1::org");
  for (int i = 0; i < 10'000; ++i) reader.take_head_line("X-Sentry-Rate-Limits: 1::org\r\n");
  CHECK(reader.reply().rate_limits.size() <= kMaxHeaderValue_bytes);
  reader.take_head_line("Location: " + std::string(100'000, 'x'));
  CHECK(reader.reply().location.size() == kMaxHeaderValue_bytes);
}

TEST_CASE("A trailer behind the body changes nothing", "[reply_reader]") {
  ReplyReader reader = with_head({"HTTP/1.1 200 OK\r\n", "\r\n"});
  CHECK(reader.take_body("x"));
  reader.take_head_line("Retry-After: 5\r\n");
  CHECK(reader.reply().retry_after.empty());
}

TEST_CASE("Of a body no more than the limit is kept", "[reply_reader]") {
  ReplyReader reader;
  const std::string piece(kMaxReplyBody_bytes - 1, 'x');
  CHECK(reader.take_body(piece));
  CHECK(reader.take_body("y"));
  CHECK_FALSE(reader.take_body("z"));
  CHECK(reader.reply().body == piece + "y");
}
