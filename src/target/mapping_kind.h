// What the name of a mapping says about what is behind it.
#pragma once

#include <string_view>

namespace sentry_prof::target {

// The kernel appends this to the path of a file that has no name any more (d_path).
inline constexpr std::string_view kDeletedSuffix = " (deleted)";

inline constexpr std::string_view kVdsoPath = "[vdso]";

// Opening a device, or reading its memory, may have effects. /dev/shm holds files like any other.
bool is_device_path(std::string_view path);

enum class MappingKind {
  File,      // a path that may be opened
  MemoryFd,  // "/memfd:NAME": an ELF file or JIT code, can be opened by map_files only, or read as
             // it is mapped
  Vdso,
  Anonymous,  // no file, or none that may be opened: devices, SysV shared memory, [heap], //anon
};

// Sources: proc_pid_maps(5); perf_event_mmap_event() in kernel/events/core.c.
MappingKind kind_of_mapping(std::string_view path);

}  // namespace sentry_prof::target
