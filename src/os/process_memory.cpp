#include "os/process_memory.h"

#include <algorithm>
#include <array>

#include <sys/uio.h>

namespace sentry_prof::os {

namespace {

constexpr uint64_t kPageBytes = 4096;

// A transfer is whole or partial by pieces, never within one: so each page is a piece.
using Pages = std::array<iovec, 256>;

size_t split_into_pages(uint64_t address, size_t size_bytes, Pages& pages) {
  size_t count = 0;
  while (size_bytes > 0 && count < pages.size()) {
    const size_t piece = std::min<size_t>(size_bytes, kPageBytes - address % kPageBytes);
    pages[count++] = {reinterpret_cast<void*>(address), piece};
    address += piece;
    size_bytes -= piece;
  }
  return count;
}

size_t total_bytes(const Pages& pages, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += pages[i].iov_len;
  return sum;
}

}  // namespace

size_t read_memory(pid_t pid, uint64_t address, std::span<std::byte> out) {
  Pages pages;
  size_t done = 0;
  while (done < out.size()) {
    const size_t count = split_into_pages(address + done, out.size() - done, pages);
    const iovec local{out.data() + done, total_bytes(pages, count)};
    const ssize_t got = ::process_vm_readv(pid, &local, 1, pages.data(), count, 0);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
    if (static_cast<size_t>(got) < local.iov_len) break;
  }
  return done;
}

}  // namespace sentry_prof::os
