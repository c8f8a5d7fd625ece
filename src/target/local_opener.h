// The files of this machine behind mappings of processes that ran at another time, maybe elsewhere
// (the Linux half).
#pragma once

#include "target/image_opener.h"

#include <cstdint>
#include <memory>
#include <string>

namespace sentry_prof::target {

struct LocalFiles {
  // When the mappings were made, or later. Without a build id a file proves itself only by its
  // inode, and by being neither younger nor modified since.
  uint64_t recorded_unix_ns = 0;
  // Where perf keeps copies by build id: below it .build-id/XX/YYY.../elf (or vdso, debug).
  // Empty: nowhere.
  std::string build_id_cache;
  // Recorded on this machine, under a kernel of this release: its vdso is ours, also where no build
  // id says so (perf record -z, or into a pipe).
  bool has_own_kernel = false;
};

// By path, then by build id from the cache; the vdso is our own, or one of the cache. Debug files
// (open_by_path() of .../.build-id/XX/YYY.debug) are looked for in the same two places. The store
// compares build ids, so that no other file is taken. Regular files only.
std::unique_ptr<ImageOpener> make_local_opener(LocalFiles files);

}  // namespace sentry_prof::target
