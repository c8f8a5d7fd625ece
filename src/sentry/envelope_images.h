// The image type of envelopes that somebody else has put together.
#pragma once

#include <string>

namespace sentry_prof::sentry {

// With each image type "elf" of its profiles as "symbolic", the name under which the server knows
// ELF images, and the lengths in the item headers to match. All other bytes stay. An envelope that
// is faulty or has no such image is returned as it is.
std::string with_symbolic_images(std::string envelope);

}  // namespace sentry_prof::sentry
