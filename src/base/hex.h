// Lower-case hexadecimal.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sentry_prof {

std::string to_hex(std::span<const std::byte> bytes);

}  // namespace sentry_prof
