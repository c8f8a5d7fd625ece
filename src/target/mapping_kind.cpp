#include "target/mapping_kind.h"

namespace sentry_prof::target {

bool is_device_path(std::string_view path) {
  return path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
}

MappingKind kind_of_mapping(std::string_view path) {
  if (path == kVdsoPath) return MappingKind::Vdso;
  if (!path.starts_with('/') || path.starts_with("//anon")) return MappingKind::Anonymous;
  if (path.starts_with("/memfd:")) return MappingKind::MemoryFd;
  if (is_device_path(path)) return MappingKind::Anonymous;
  // Names that the kernel makes up for shared anonymous memory.
  if (path.starts_with("/SYSV") || path.starts_with("/anon_hugepage")) {
    return MappingKind::Anonymous;
  }
  return MappingKind::File;
}

}  // namespace sentry_prof::target
