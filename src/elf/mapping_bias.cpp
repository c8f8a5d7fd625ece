// Which segment of a file a mapping shows, and so where the file was loaded.
#include "elf/layout.h"

#include <algorithm>
#include <tuple>

#include <elf.h>

namespace sentry_prof::elf {
namespace {

constexpr uint64_t kSmallestPage_bytes = 4096;

struct FileRange {
  uint64_t begin = 0, end = 0;
  bool holds(uint64_t offset) const { return begin <= offset && offset < end; }
};

// The part of the file that the loader maps for a segment: it rounds to pages. File sizes are below
// 2^63, so the sums cannot wrap.
FileRange mapped_range(const Segment& segment, uint64_t page_bytes) {
  const uint64_t mask = page_bytes - 1;
  return {segment.file_offset & ~mask, (segment.file_offset + segment.file_bytes + mask) & ~mask};
}

FileRange segment_bytes(const Segment& segment) {
  return {segment.file_offset, segment.file_offset + segment.file_bytes};
}

// x86 has pages of 4 KiB. Elsewhere the kernel may use 16 or 64 KiB, of which everything about a
// mapping is then a multiple; taking a page for larger than it is does little harm.
uint64_t possible_page_bytes(const Layout& layout, uint64_t begin, uint64_t size_bytes,
                             uint64_t file_offset) {
  if (layout.machine == EM_X86_64 || layout.machine == EM_386) return kSmallestPage_bytes;
  for (uint64_t page_bytes : {65536u, 16384u}) {
    if (((begin | size_bytes | file_offset) & (page_bytes - 1)) == 0) return page_bytes;
  }
  return kSmallestPage_bytes;
}

// More is better. Only a segment that holds the mapping's first byte counts: mprotect and munmap
// cut pieces off a mapping, and the dynamic linker first maps the whole library from the first
// segment's offset, far beyond that segment's end. Last, of two executable segments in one page: a
// program that is not position-independent runs where it was linked.
using Fitness = std::tuple<bool, bool, bool, bool>;

Fitness fitness_of(const Segment& segment, FileRange range, uint64_t file_offset,
                   uint64_t size_bytes, bool is_where_linked) {
  const FileRange tight = mapped_range(segment, kSmallestPage_bytes);
  return {segment.is_executable, size_bytes <= range.end - file_offset, tight.holds(file_offset),
          is_where_linked};
}

LoadBias bias_for(const Segment& segment, RuntimeAddress begin, uint64_t file_offset) {
  return {begin.value - file_offset + segment.file_offset - segment.vaddr.value};
}

}  // namespace

std::optional<LoadBias> bias_of_mapping(const Layout& layout, RuntimeAddress begin,
                                        uint64_t size_bytes, uint64_t file_offset) {
  const uint64_t page_bytes = possible_page_bytes(layout, begin.value, size_bytes, file_offset);
  std::optional<LoadBias> best;
  Fitness best_fitness;
  for (const Segment& segment : layout.segments) {
    const FileRange range = mapped_range(segment, page_bytes);
    if (segment.file_bytes == 0 || !range.holds(file_offset)) continue;
    const LoadBias bias = bias_for(segment, begin, file_offset);
    // Whole pages are mapped: an address and its file offset agree in the bits below the page size.
    // perf inject -j makes up mappings of compiled functions, which begin anywhere.
    const bool is_of_kernel = file_offset % kSmallestPage_bytes == 0;
    const bool may_be = is_of_kernel ? bias.value % kSmallestPage_bytes == 0
                                     : segment_bytes(segment).holds(file_offset);
    if (!may_be) continue;
    const bool is_where_linked = layout.type == ET_EXEC && bias.value == 0;
    const Fitness fitness = fitness_of(segment, range, file_offset, size_bytes, is_where_linked);
    if (!best || fitness > best_fitness) {
      best = bias;
      best_fitness = fitness;
    }
  }
  return best;
}

std::vector<LoadBias> possible_biases(const Layout& layout, RuntimeAddress begin,
                                      uint64_t file_offset) {
  std::vector<LoadBias> biases;
  for (const Segment& segment : layout.segments) {
    const bool is_shown =
        segment.file_bytes != 0 && mapped_range(segment, kSmallestPage_bytes).holds(file_offset);
    const LoadBias bias = bias_for(segment, begin, file_offset);
    if (is_shown && bias.value % kSmallestPage_bytes == 0) biases.push_back(bias);
  }
  return biases;
}

const Segment* segment_of_code(const Layout& layout, LoadBias bias, RuntimeAddress begin,
                               uint64_t size_bytes) {
  const uint64_t mask = possible_page_bytes(layout, begin.value, size_bytes, 0) - 1;
  const auto holds = [&](const Segment& segment) {
    const uint64_t first = to_runtime(segment.vaddr, bias).value;
    const uint64_t end = (first + segment.file_bytes + mask) & ~mask;
    const bool is_inside = (first & ~mask) <= begin.value && begin.value < end;
    return segment.is_executable && is_inside && size_bytes <= end - begin.value;
  };
  const auto found = std::ranges::find_if(layout.segments, holds);
  return found == layout.segments.end() ? nullptr : &*found;
}

}  // namespace sentry_prof::elf
