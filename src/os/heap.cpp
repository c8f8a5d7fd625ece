#include "os/heap.h"

#include <malloc.h>

namespace sentry_prof::os {

void give_back_large_blocks() {
#ifdef M_MMAP_THRESHOLD  // glibc
  constexpr int kLargeBlock_bytes = 128 * 1024;
  ::mallopt(M_MMAP_THRESHOLD, kLargeBlock_bytes);
#endif
}

void keep_freed_blocks() {
#ifdef M_MMAP_THRESHOLD
  constexpr int kLargestKept_bytes =
      32 << 20;  // the most that glibc takes (DEFAULT_MMAP_THRESHOLD_MAX)
  ::mallopt(M_MMAP_THRESHOLD, kLargestKept_bytes);
  ::mallopt(M_TRIM_THRESHOLD, kLargestKept_bytes);
#endif
}

}  // namespace sentry_prof::os
