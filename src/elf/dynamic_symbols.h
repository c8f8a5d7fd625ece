// .dynsym of a file without section headers, as the dynamic linker finds it.
// Source: gABI chapter 5 (dynamic section, hash table); the GNU hash section as glibc reads it.
#pragma once

#include "base/byte_source.h"
#include "elf/layout.h"

#include <optional>

namespace sentry_prof::elf {

// `dynamic` is PT_DYNAMIC's contents; the layout's segments are known. The number of symbols comes
// from DT_HASH or DT_GNU_HASH: without either, or if anything lies outside the file, there are
// none. `relocated_by` is what glibc has added to the addresses there, of a file that is read as it
// is mapped (elf_get_dynamic_info() in elf/get-dynamic-info.h; musl leaves them as they are).
std::optional<SymbolSection> find_dynamic_symbols(const ByteSource& file, const Layout& layout,
                                                  const Section& dynamic,
                                                  LoadBias relocated_by = {});

}  // namespace sentry_prof::elf
