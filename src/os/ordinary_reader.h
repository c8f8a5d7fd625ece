// Reading as a user without privileges would.
#pragma once

#include <array>
#include <cstdint>

namespace sentry_prof::os {

// While it lives the calling thread may read of files only what their modes permit it, whatever
// capabilities it has: CAP_DAC_READ_SEARCH and CAP_DAC_OVERRIDE are not in effect (capset(2)).
class AsOrdinaryReader {
 public:
  AsOrdinaryReader();
  AsOrdinaryReader(const AsOrdinaryReader&) = delete;
  AsOrdinaryReader& operator=(const AsOrdinaryReader&) = delete;
  ~AsOrdinaryReader();

 private:
  // Of capabilities 0 to 31 and 32 to 63: effective, permitted, inheritable (linux/capability.h).
  std::array<std::array<uint32_t, 3>, 2> previous_{};
  bool is_changed_ = false;
};

}  // namespace sentry_prof::os
