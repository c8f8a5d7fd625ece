// What a user can do about a permission that is missing.
#pragma once

#include <string>
#include <string_view>

namespace sentry_prof::os {

// "run as root, or with CAP_X"; something else for root, who has been there already. `capability`
// is its name. Continues a sentence.
std::string how_to_get(std::string_view capability);

}  // namespace sentry_prof::os
