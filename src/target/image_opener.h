// Where the bytes of mapped files come from.
#pragma once

#include "base/byte_source.h"
#include "sentry_prof/result.h"
#include "target/mapping_facts.h"

#include <memory>

namespace sentry_prof::target {

// Opens the file behind a mapping. The Linux half implements it (map_files, then /proc/PID/exe,
// then openat2 below /proc/PID/root; of a process that has ended the plain path, where the kernel
// gave a build id, or the file has the inode and did not change since the opener was made).
// Where a build id was given, the caller must compare it with the file's.
class ImageOpener {
 public:
  virtual ~ImageOpener() = default;
  virtual Result<std::shared_ptr<const ByteSource>> open(const MappingFacts& mapping) = 0;
  // The file that has the mapping's name now, whatever lies in the mapping's place.
  virtual Result<std::shared_ptr<const ByteSource>> open_by_path(const MappingFacts& mapping) = 0;
  // Its bytes as its process has it mapped, of a file that cannot be opened: those that are mapped
  // read-only, the others are zero (MappedFile).
  virtual Result<std::shared_ptr<const ByteSource>> open_mapped(const MappingFacts& mapping) = 0;
  // Whether a path that ends in " (deleted)" is the file's real name; asked after open().
  virtual bool name_is_literal(const MappingFacts& /*mapping*/) { return false; }
};

}  // namespace sentry_prof::target
