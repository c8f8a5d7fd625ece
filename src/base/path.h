// Names in paths.
#pragma once

#include <string_view>

namespace sentry_prof {

// What follows the last slash; the whole path without one.
inline std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace sentry_prof
