// Puts an answer together from the lines and pieces in which it arrives. All of it is hostile.
#pragma once

#include "upload/http.h"

#include <string_view>

namespace sentry_prof::upload {

class ReplyReader {
 public:
  // One line of the head, with or without its line end: a status line, which begins a new answer
  // (100 Continue and a proxy's come before the server's), a header, or the empty line.
  void take_head_line(std::string_view line);
  // A piece of the body. False once kMaxReplyBody_bytes are there: the rest is of no interest.
  bool take_body(std::string_view piece);

  // The status is known and the head was there to its end: what the server decided is known, even
  // if the body never comes.
  bool has_whole_head() const { return has_whole_head_; }
  const HttpReply& reply() const { return reply_; }

 private:
  void take_header(std::string_view name, std::string_view value);

  HttpReply reply_;
  bool has_whole_head_ = false;
};

}  // namespace sentry_prof::upload
