// Sections that are stored compressed.
#pragma once

#include "base/byte_source.h"
#include "elf/layout.h"
#include "sentry_prof/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sentry_prof::elf {

// How much may be stored, and come of it; and of what it is paid for, whatever comes of it: what is
// stored and what is expanded, since either takes time.
struct Expansion {
  uint64_t max_bytes;
  uint64_t& left_bytes;
};

// The section's contents, with nothing left out. LimitExceeded: more than the maximum expanded or
// stored, or more of both than is left; Unsupported: an unknown compression; Malformed: damaged, or
// not of the size that its header states; Io.
Result<std::vector<std::byte>> unpack_section(const ByteSource& file, const Layout& layout,
                                              const PackedSection& packed,
                                              const Expansion& expansion);

// The ELF file in .gnu_debugdata, which the layout must have. Errors as above.
Result<std::shared_ptr<const ByteSource>> unpack_debugdata(const ByteSource& file,
                                                           const Layout& layout,
                                                           const Expansion& expansion);

}  // namespace sentry_prof::elf
