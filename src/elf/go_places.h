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

// Whether it begins so, as x86-64's does: `header` has its first eight bytes at least.
bool is_go_table(Bytes header);

// Whether an image may have such a table: one that cannot be read now may be read later.
bool may_have_go_functions(const Layout& layout);

// What finding it may read of the file, beside some words.
uint64_t go_search_bytes(const Layout& layout);

struct GoText {  // link addresses
  uint64_t begin = 0;
  // The first function, and the end of the last one; both 0: not known.
  uint64_t min_pc = 0;
  uint64_t max_pc = 0;
};
struct GoPlaces {
  Section functions;
  std::optional<GoText> text;
};

// Of x86-64 images. Up to Go 1.25 linkers other than Go's lay the table of position-independent
// programs into .data.rel.ro: what begins as it does is taken, with all that is behind it there.
// None if there is none, or it cannot be read.
std::optional<GoPlaces> find_go_places(const ByteSource& file, const Layout& layout);

}  // namespace sentry_prof::elf
