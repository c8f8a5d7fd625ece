#include "os/heap.h"

#include <malloc.h>

namespace sentry_prof::os {

void give_back_large_blocks() {
#ifdef M_MMAP_THRESHOLD  // glibc
  constexpr int kLargeBlock_bytes = 128 * 1024;
  ::mallopt(M_MMAP_THRESHOLD, kLargeBlock_bytes);
#endif
}

}  // namespace sentry_prof::os
