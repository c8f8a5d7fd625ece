#include "stack_mirror.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>
#include <sys/uio.h>

namespace sentry_prof::judge {

void StackMirror::clear() {
  if (bytes_ != nullptr) ::munmap(bytes_, high_ - low_);
  bytes_ = nullptr;
  low_ = high_ = 0;
}

void StackMirror::refresh(uint64_t sp, uint64_t slot) {
  if (!holds(sp)) move_to(sp);
  if (bytes_ == nullptr) return;
  if (high_ - sp <= kSmallStack_bytes || until_whole_-- == 0) return refresh_all(sp);
  const uint64_t near_end = std::min(sp + kWindow_bytes, high_);
  if (slot < near_end || slot >= high_) return read(sp, std::min(near_end + 64, high_));
  const uint64_t far_begin = std::max(near_end, slot - kWindow_bytes);
  const uint64_t far_end = std::min(slot + 64, high_);
  const iovec local[2] = {{at(sp), near_end - sp}, {at(far_begin), far_end - far_begin}};
  const iovec remote[2] = {{reinterpret_cast<void*>(sp), near_end - sp},
                           {reinterpret_cast<void*>(far_begin), far_end - far_begin}};
  ::process_vm_readv(tracee_.pid(), local, 2, remote, 2, 0);
}

void StackMirror::refresh_all(uint64_t sp) {
  if (!holds(sp)) move_to(sp);
  until_whole_ = kWholeEvery;
  read(sp, high_);
}

void StackMirror::read(uint64_t begin, uint64_t end) {
  if (begin < end) tracee_.read(begin, {at(begin), end - begin});
}

void StackMirror::move_to(uint64_t sp) {
  clear();
  const StackRegion mapping = tracee_.mapping_of(sp);
  if (mapping.high == 0) return;
  const uint64_t low = std::max(mapping.low, sp - std::min(sp, kMaxMirrored_bytes)) & ~uint64_t{7};
  const uint64_t high = std::min(mapping.high, sp + kMaxMirrored_bytes);
  void* memory = ::mmap(nullptr, high - low, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  bytes_ = static_cast<std::byte*>(memory);
  low_ = low;
  high_ = high;
  until_whole_ = 0;
}

uint64_t StackMirror::word_at(uint64_t address) const {
  uint64_t word = 0;
  if (holds(address) && high_ - address >= sizeof(word)) {
    std::memcpy(&word, at(address), sizeof(word));
    return word;
  }
  return tracee_.read_word(address);
}

unwind::StackSnapshot StackMirror::snapshot(uint64_t sp) const {
  if (!holds(sp)) return {{sp}, {}, unwind::StackSnapshot::Behind::Nothing};
  return {{sp}, Bytes(at(sp), high_ - sp), unwind::StackSnapshot::Behind::Nothing};
}

}  // namespace sentry_prof::judge
