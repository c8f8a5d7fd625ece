// Texts of a chunk that are kept from growing beyond their part of the size estimate.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sentry_prof::profile {

// What printable UTF-8 takes within a JSON string: quotes and backslashes are escaped.
size_t json_text_bytes(std::string_view printable);

// Printable UTF-8, without its middle if it would take more than `max_json_bytes` in JSON.
std::string shortened_for_json(std::string_view printable, size_t max_json_bytes);

// The path of an image, any bytes: printable, shortened to kImagePath_bytes in JSON.
std::string bounded_path(std::string_view path);

}  // namespace sentry_prof::profile
