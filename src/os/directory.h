// What stands in a directory.
#pragma once

#include <functional>

namespace sentry_prof::os {

// Calls `visit` with each name in an open directory (O_PATH will do), "." and ".." among them, in
// no order. The position of `directory_fd` neither matters nor moves: the listing has a descriptor
// of its own. `visit` may remove what it is told of. 0, or the errno of opening or reading.
int for_each_name(int directory_fd, const std::function<void(const char* name)>& visit);

}  // namespace sentry_prof::os
