// Words that the loader fills with addresses: the file need not have them in their places.
// Source: System V gABI, chapter 4 (relocation); x86-64 psABI, 4.4 (R_X86_64_RELATIVE).
#pragma once

#include "base/address.h"
#include "base/byte_source.h"
#include "elf/layout.h"

#include <cstdint>
#include <span>

namespace sentry_prof::elf {

// Of the words of eight bytes at `first`, those that `rela_dyn` of an x86-64 image has a relative
// relocation for become its addend: a link address. Others, and what cannot be read, stay. Reads
// 16 MiB of it at the most.
void apply_relative_relocations(const ByteSource& file, const Section& rela_dyn, LinkAddress first,
                                std::span<uint64_t> words);

}  // namespace sentry_prof::elf
