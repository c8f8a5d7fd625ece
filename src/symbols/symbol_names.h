// Function names from an image's symbol tables (.symtab; without it, the debug file's,
// MiniDebugInfo and .dynsym, and what Go's runtime calls its functions), for a batch of addresses.
#pragma once

#include "base/address.h"
#include "base/byte_source.h"
#include "elf/function_starts.h"
#include "elf/layout.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::symbols {

// What may be read for all images of a chunk. A real image's tables have some MiB, those of the
// largest browsers' debug builds a hundred; so much of hostile ones takes two or three seconds.
struct SymbolBudget {
  uint64_t table_bytes = uint64_t{1} << 30;
  uint64_t unpacked_bytes = uint64_t{128} << 20;  // of MiniDebugInfo, with what is stored of it
  uint64_t demangling_ns = 2'000'000'000;         // of 100,000 real names it takes a quarter
  uint64_t (*now_ns)() = nullptr;  // of CPU time; null: demangling takes what it takes
  // What was left out for want of it: tables that were not, or not wholly, read or compared (or are
  // larger than any real one), and names that stayed mangled.
  uint64_t tables_cut = 0;
  uint64_t names_left_mangled = 0;
};

// A separate debug file of the same build: its symbol table has the names that were stripped.
struct DebugSymbols {
  const ByteSource& file;
  elf::SymbolSection symtab;
};

// Names for link addresses sorted in ascending order; nullopt where no function symbol holds the
// address. One pass over the table in pieces: memory is bounded by the number of addresses, not by
// the table. Demangled; at most 1 KiB each. Unreadable or hostile tables give no names, never an
// error. What is read is taken from `budget`. `function_starts` are the image's, null if it has
// none: a symbol without size does not reach over one. Code that such a symbol would name and that
// handlers return to (elf/signal_return.h) is called __restore_rt, as in musl and glibc. An entry
// of the PLT has the name of the function that it jumps to, and "@plt" (symbols/plt_names.h).
std::vector<std::optional<std::string>> names_at(
    const ByteSource& file, const elf::Layout& layout,
    std::span<const LinkAddress> sorted_addresses, SymbolBudget& budget,
    const elf::FunctionStarts* function_starts = nullptr,
    const std::optional<DebugSymbols>& debug_symbols = std::nullopt);

// Itanium C++, Rust (legacy and v0), D; anything else is returned as it is. Without return type.
// Output is bounded; a name that would grow beyond the bound is returned as it is.
std::string demangled(std::string_view symbol);

}  // namespace sentry_prof::symbols
