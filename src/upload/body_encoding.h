// Compression of request bodies.
#pragma once

#include "sentry_prof/result.h"

#include <string>
#include <string_view>

namespace sentry_prof::upload {

enum class BodyEncoding { Identity, Gzip, Zstd };

// The value of Content-Encoding; empty for Identity.
std::string_view content_encoding(BodyEncoding encoding);

// The whole body in one piece: RFC 1952 or RFC 8878. LimitExceeded if memory is short.
Result<std::string> encode_body(std::string_view body, BodyEncoding encoding);

}  // namespace sentry_prof::upload
