// A section as the readers of call frame information see it.
#pragma once

#include "elf/cfi_entry.h"
#include "elf/cfi_table.h"

namespace sentry_prof::elf {

// Views `section`, which is one of `sections` or to become one: it must stay where it is.
inline FrameSection frame_section(const CfiSections& sections, const CfiSection& section,
                                  bool is_eh_frame = true) {
  FrameSection result;
  result.bytes = section.bytes_in_memory();
  result.in_file = section.in_file.get();
  result.address = section.address;
  result.order = sections.order;
  result.address_size_bytes = sections.is_64_bit ? 8 : 4;
  result.is_eh_frame = is_eh_frame;
  result.end_is_known = section.end_is_known;
  if (sections.text.value != 0) result.text = sections.text.value;
  return result;
}

}  // namespace sentry_prof::elf
