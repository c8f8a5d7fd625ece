// The program that the kernel runs at each sample: it copies what the record has no room for of a
// stack that is deeper. Pure.
#pragma once

#include <vector>

#include <linux/bpf.h>

namespace sentry_prof::sampling {

// Maps: a hash from a thread's id (u32) to the end of its stack (u64; 0: not known), and a ring
// buffer that takes the blocks. Of other threads nothing is copied, and all samples are let
// through. GPL helpers are called, the youngest of Linux 5.15, of which two take the kernel's type
// information (CONFIG_DEBUG_INFO_BTF).
std::vector<bpf_insn> outer_stack_program(int threads_map_fd, int ring_map_fd);

}  // namespace sentry_prof::sampling
