// Sections that are stored compressed.
#pragma once

#include "base/byte_source.h"
#include "elf/layout.h"
#include "sentry_prof/result.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace sentry_prof::elf {

// How much may come of it; and how much was expanded at most, whatever came of it.
struct Expansion {
  size_t max_bytes = 0;
  size_t spent_bytes = 0;
};

// The section's contents, with nothing left out. LimitExceeded: more than the maximum expanded, or
// more stored; Unsupported: an unknown compression; Malformed: damaged, or not of the size that its
// header states; Io.
Result<std::vector<std::byte>> unpack_section(const ByteSource& file, const Layout& layout,
                                              const PackedSection& packed, Expansion& expansion);

// The ELF file in .gnu_debugdata, which the layout must have. Errors as above.
Result<std::shared_ptr<const ByteSource>> unpack_debugdata(const ByteSource& file,
                                                           const Layout& layout,
                                                           Expansion& expansion);

}  // namespace sentry_prof::elf
