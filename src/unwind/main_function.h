// The function main, which nothing calls by its name: the start code of a program hands its address
// to the C library. Source: glibc, sysdeps/x86_64/start.S (__libc_start_main takes it in %rdi);
// musl, crt/crt1.c.
#pragma once

#include "unwind/code_source.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::unwind {

// By the code at code.entry_point(), x86-64's, and a function that it calls (musl's _start_c); none
// where these hand over something else. `work` grows by what it cost.
std::optional<LinkAddress> main_function(const CodeSource& code, uint32_t& work);

// Whether the same code ends before `pc`, which lies little behind the entry point: something that
// never goes on (hlt, ret, jmp) stands between, and nothing before that jumps over it. `work` grows
// by what it cost.
bool start_code_ends_before(const CodeSource& code, LinkAddress pc, uint32_t& work);

}  // namespace sentry_prof::unwind
