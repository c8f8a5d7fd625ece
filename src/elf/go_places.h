// Where the linker has put what Go's runtime knows of a program: its table of functions, and, as
// that counts from it, the beginning of its code.
// Source: Go 1.18 to 1.27, src/runtime/symtab.go (pcHeader, moduledata).
#pragma once

#include "base/byte_source.h"
#include "elf/layout.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::elf {

// The first bytes of the table, of Go 1.18 and of 1.20 and later, little-endian: two bytes of
// padding, the size of the smallest instruction and of a pointer follow.
inline constexpr uint32_t kGo118Magic = 0xfffffff0, kGo120Magic = 0xfffffff1;

// Layout::go_functions, else, of position-independent programs up to Go 1.25 that another linker
// than Go's has linked, what begins so in .data.rel.ro and goes on to its end. None if there is
// neither, or where the file cannot be read.
std::optional<Section> find_go_functions(const ByteSource& file, const Layout& layout);

// Whether an image may have such a table: one that cannot be read now may be read later.
bool may_have_go_functions(const Layout& layout);

// Link addresses of Go's code: of its beginning, its first function and the end of its last one.
struct GoText {
  uint64_t begin = 0;
  uint64_t min_pc = 0;
  uint64_t max_pc = 0;
};

// From Go 1.26 on, whose table does not say it any more: as the file has it, or the loader will.
// Unsupported: there is no section that says it. Io.
Result<GoText> read_go_text(const ByteSource& file, const Layout& layout);

// Up to Go 1.25, where the header of `table` has 0: the beginning of Go's code as the loader will
// store it there. 0 if it will not.
uint64_t go_text_of_loader(const ByteSource& file, const Layout& layout, const Section& table);

}  // namespace sentry_prof::elf
