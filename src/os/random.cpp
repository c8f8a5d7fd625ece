#include "os/random.h"

#include "os/clock.h"

#include <sys/random.h>

namespace sentry_prof::os {

uint64_t random_u64() {
  uint64_t value = 0;
  // getrandom gives up to 256 bytes whole.
  if (::getrandom(&value, sizeof(value), 0) != sizeof(value)) value = monotonic_ns();
  return value;
}

}  // namespace sentry_prof::os
