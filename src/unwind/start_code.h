// The code at a program's entry point, x86-64's: where it ends, and the function main, whose
// address it hands to the C library. Source: glibc, sysdeps/x86_64/start.S (__libc_start_main takes
// it in %rdi); musl, crt/crt1.c.
#pragma once

#include "unwind/code_source.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::unwind {

// Where main begins, by the code at code.entry_point() and a function that it calls (musl's
// _start_c); none where these hand over something else. `work` grows by what it cost.
std::optional<LinkAddress> main_function(const CodeSource& code, uint32_t& work);

// So many bytes behind an entry point that no FDE covers are taken for start code: glibc's is 34
// bytes long, musl's calls out after 22.
inline constexpr uint64_t kStartCode_bytes = 64;

// Whether the code at code.entry_point() ends before `pc`, one of these bytes: something that never
// goes on (hlt, ret, jmp) stands between, and nothing before that jumps over it. False of a pc
// elsewhere. `work` grows by what it cost.
bool start_code_ends_before(const CodeSource& code, LinkAddress pc, uint32_t& work);

}  // namespace sentry_prof::unwind
