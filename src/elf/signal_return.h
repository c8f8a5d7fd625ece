// The code that a signal handler returns to, where it has no unwind information.
#pragma once

#include "base/address.h"
#include "base/byte_source.h"
#include "elf/layout.h"
#include "unwind/row.h"

namespace sentry_prof::elf {

// True if `pc` (minus one already for a return address) lies in the call of rt_sigreturn, in an
// image of aarch64 (`mov x8, #139; svc #0`) or x86-64 (`mov $15, %rax; syscall`, or with %eax);
// then `row` leads to what the signal interrupted. The vdso of aarch64 has had no unwind
// information for it since Linux 5.8, and before it led past the interrupted function; musl's
// __restore_rt has none on either. Unwinders are meant to know these instructions
// (arch/arm64/kernel/vdso/sigreturn.S; glibc's sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c).
// Reads some bytes of the file, which `row.work` counts.
bool signal_return_row(const ByteSource& file, const Layout& layout, LinkAddress pc,
                       unwind::Row& row);

// Whether there is such a row.
bool is_signal_return(const ByteSource& file, const Layout& layout, LinkAddress pc);

}  // namespace sentry_prof::elf
