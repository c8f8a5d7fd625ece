// Another process's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/types.h>

namespace sentry_prof::os {

// Copies the process's memory from `address` on, as far as it is mapped, and returns how many bytes
// that was. 0 if none is, the process has ended, or we may not (as for ptrace: proc(5),
// process_vm_readv(2)). The process is not stopped.
size_t read_memory(pid_t pid, uint64_t address, std::span<std::byte> out);

}  // namespace sentry_prof::os
