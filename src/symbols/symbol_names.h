// Function names from an image's own symbol tables (.symtab; without it, MiniDebugInfo and
// .dynsym, and what Go's runtime calls its functions), for a batch of addresses.
#pragma once

#include "base/address.h"
#include "base/byte_source.h"
#include "elf/layout.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::symbols {

// Names for link addresses sorted in ascending order; nullopt where no function symbol holds the
// address. One pass over the table in pieces: memory is bounded by the number of addresses, not by
// the table. Demangled; at most 1 KiB each. Unreadable or hostile tables give no names, never an
// error.
std::vector<std::optional<std::string>> names_at(const ByteSource& file, const elf::Layout& layout,
                                                 std::span<const LinkAddress> sorted_addresses);

// Itanium C++, Rust (legacy and v0), D; anything else is returned as it is. Without return type.
// Output is bounded; a name that would grow beyond the bound is returned as it is.
std::string demangled(std::string_view symbol);

}  // namespace sentry_prof::symbols
