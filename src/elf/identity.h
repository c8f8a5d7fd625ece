// Image identity: build id, code_id and debug_id, equal to sentry-cli's for every file.
#pragma once

#include "base/byte_source.h"
#include "elf/layout.h"
#include "sentry_prof/profile.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sentry_prof::elf {

struct Identity {
  std::vector<std::byte> build_id;  // NT_GNU_BUILD_ID, 1..64 bytes; empty without one
  std::string code_id;              // the build id in lower-case hex
  // From the first 16 bytes of the build id; without one, from the first page of .text; else nil.
  Uuid debug_id;
};

// Never fails: what cannot be read is absent.
Identity read_identity(const ByteSource& file, const Layout& layout);

// Folds a build id into a debug_id: first 16 bytes, zero-padded, and for a little-endian file the
// fields u32, u16, u16 swapped. Source: symbolic-debuginfo, ElfObject::debug_id.
Uuid debug_id_of_build_id(std::span<const std::byte> build_id, std::endian order);

}  // namespace sentry_prof::elf
