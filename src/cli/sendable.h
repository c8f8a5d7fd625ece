// From the text of a file to what is sent.
#pragma once

#include "sentry_prof/result.h"
#include "upload/body_encoding.h"
#include "upload/rate_limits.h"

#include <string>
#include <string_view>

namespace sentry_prof::cli {

// An envelope, packed or not.
struct Sendable {
  std::string body;
  upload::BodyEncoding encoding = upload::BodyEncoding::Identity;
  upload::Categories categories;
};

struct SendableOptions {
  bool keeps_image_type = false;
  std::string transaction;  // V1: JSON to send with the profile; empty: made of its metadata
};

// A V1 profile, a V2 chunk or an envelope, told apart by content. Of an envelope only the image
// types change. Malformed, InvalidArgument: it cannot be put into an envelope.
Result<Sendable> make_sendable(std::string text, const SendableOptions& options);

// The same, compressed.
Result<Sendable> pack(Sendable sendable, upload::BodyEncoding encoding);

}  // namespace sentry_prof::cli
