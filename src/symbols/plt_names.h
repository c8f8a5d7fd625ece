// Where the entries of an x86-64 image's PLT jump to: no symbol table has names for them.
// Source: x86-64 psABI, sections 4.4 (relocation) and 5.2 (procedure linkage table), and the forms
// that GNU's ld, LLVM's and mold give the entries.
#pragma once

#include "base/address.h"
#include "base/byte_source.h"
#include "elf/layout.h"
#include "symbols/symbol_names.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sentry_prof::symbols {

// For each address, the symbol (not demangled) of the function that the PLT entry there jumps to;
// none where there is no entry, or it cannot be read. .dynsym has the symbols. Relocations are read
// only where an address lies in an entry, and what is read of them is taken from `budget`: nothing
// of a table that is larger.
std::vector<std::optional<std::string>> plt_targets_at(const ByteSource& file,
                                                       const elf::Layout& layout,
                                                       std::span<const LinkAddress> addresses,
                                                       SymbolBudget& budget);

}  // namespace sentry_prof::symbols
