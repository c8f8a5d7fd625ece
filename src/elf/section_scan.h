// One pass over the section headers of a file, in pieces, for the few sections that matter here.
#pragma once

#include "base/byte_source.h"
#include "elf/headers.h"
#include "elf/layout.h"

namespace sentry_prof::elf {

struct SectionTable {
  uint64_t file_offset = 0;
  uint64_t count = 0;                          // zero: no usable section headers
  uint64_t names_index = 0;                    // of .shstrtab
  uint32_t extended_program_header_count = 0;  // sh_info of section header 0 (PN_XNUM)
};

// Resolves the extended numbering. A table that does not lie within the file, or has more entries
// than we care to look at, is taken as absent: neither the kernel nor the dynamic linker look at
// it.
SectionTable find_section_table(const ByteSource& file, const FileHeader& header);

// Fills the layout's sections. What is malformed is left out.
void scan_sections(const ByteSource& file, const FileHeader& header, const SectionTable& table,
                   Layout& layout);

}  // namespace sentry_prof::elf
