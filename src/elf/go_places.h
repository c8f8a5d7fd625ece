// Where the linker has put what Go's runtime knows of a program: its table of functions, and, as
// that counts from it, the beginning of its code.
// Source: Go 1.18 to 1.27, src/runtime/symtab.go (pcHeader, moduledata).
#pragma once

#include "base/byte_source.h"
#include "elf/layout.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::elf {

// The first bytes of the table, of Go 1.18 and of 1.20 and later, little-endian: two bytes of
// padding, the size of the smallest instruction and of a pointer follow.
inline constexpr uint32_t kGo118Magic = 0xfffffff0, kGo120Magic = 0xfffffff1;

// What a file's section headers say of it.
struct GoSections {
  bool is_of_go = false;
  std::optional<Section> functions;  // .gopclntab
  std::optional<Section> module;     // .go.module: from Go 1.26 on
  std::optional<Section> data_rel_ro;
  std::optional<Section> rela_dyn;
};

// Finds Layout::go_functions and go_text of x86-64 programs. Up to Go 1.25 linkers other than Go's
// lay the table of position-independent ones into .data.rel.ro: what begins as it does is taken,
// with all that is behind it there. What cannot be read is not found. Reads up to 80 MiB of such
// programs, and of others what a few pointers take.
void find_go_places(const ByteSource& file, const GoSections& sections, Layout& layout);

}  // namespace sentry_prof::elf
