// The code that a signal handler of aarch64 returns to, which has no unwind information.
#pragma once

#include "base/address.h"
#include "base/byte_source.h"
#include "elf/layout.h"
#include "unwind/row.h"

namespace sentry_prof::elf {

// True if `pc` (minus one already for a return address) lies in `mov x8, #139; svc #0`, the call of
// rt_sigreturn, in an aarch64 image; then `row` leads to what the signal interrupted. The kernel's
// vdso has had no unwind information for it since Linux 5.8, and before it led past the interrupted
// function; musl's has none either. Unwinders are meant to know these two instructions
// (arch/arm64/kernel/vdso/sigreturn.S). Reads at most 16 bytes of the file. `row.work` grows.
bool signal_return_row(const ByteSource& file, const Layout& layout, LinkAddress pc,
                       unwind::Row& row);

}  // namespace sentry_prof::elf
