// A mapping of a process, before anything is known of what is mapped.
#pragma once

#include "base/address.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sentry_prof::target {

// What is known of a mapping when it appears, from a map record or a line of /proc/PID/maps.
struct MappingFacts {
  uint32_t pid = 0;
  RuntimeAddress begin;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  std::vector<std::byte> build_id;  // empty if not given
  uint32_t device_major = 0, device_minor = 0;
  uint64_t inode = 0;
  std::string path;  // as the target's mount namespace names it, or "[vdso]", "//anon", ""
};

}  // namespace sentry_prof::target
