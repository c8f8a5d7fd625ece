// All images of a session: one LoadedImage per build id, shared by all processes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "elf/cfi_table.h"
#include "elf/identity.h"
#include "elf/layout.h"
#include "unwind/module_map.h"

namespace sentry_prof::target {

// What is known of a mapping when it appears, from a map record or a line of /proc/PID/maps.
struct MappingFacts {
  uint32_t pid = 0;
  RuntimeAddress begin;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  std::vector<std::byte> build_id;   // empty if not given
  uint32_t device_major = 0, device_minor = 0;
  uint64_t inode = 0;
  std::string path;                  // as the target's mount namespace names it, or "[vdso]", "//anon", ""
};

// An ELF file that was mapped executable. Identity and layout are read when it is first seen, CFI when
// the first walk needs it. Immutable for readers apart from that; the file stays open.
class LoadedImage final : public unwind::CfiSource {
 public:
  LoadedImage(unwind::ImageId id, std::string path, std::shared_ptr<const ByteSource> file,
              elf::Layout layout, elf::Identity identity, RuntimeAddress first_seen);

  unwind::ImageId id() const;
  const std::string& path() const;               // without " (deleted)"
  const ByteSource& file() const;
  const elf::Layout& layout() const;
  const elf::Identity& identity() const;
  RuntimeAddress first_seen() const;             // of the first PT_LOAD, where it was first mapped

  // Recording thread only: loads the CFI on first use.
  unwind::RowStatus row_at(LinkAddress pc, unwind::Row& row) const override;
  // Why there is no CFI, for the summary; empty if it loaded or was not needed yet.
  const std::string& cfi_error() const;

 private:
  unwind::ImageId id_;
  std::string path_;
  std::shared_ptr<const ByteSource> file_;
  elf::Layout layout_;
  elf::Identity identity_;
  RuntimeAddress first_seen_;
  mutable std::unique_ptr<elf::CfiTable> cfi_;
  mutable bool cfi_was_tried_ = false;
  mutable std::string cfi_error_;
};

// Opens the file behind a mapping. The Linux half implements it (map_files, then openat2 below
// /proc/PID/root, then, only where the kernel gave a build id that matches, the plain path).
class ImageOpener {
 public:
  virtual ~ImageOpener() = default;
  virtual Result<std::shared_ptr<const ByteSource>> open(const MappingFacts& mapping) = 0;
};

// Owned by the recording thread. LoadedImages live as long as the store; another thread may read
// those it was given.
class ImageStore {
 public:
  explicit ImageStore(ImageOpener& opener);

  // The module of a new executable mapping: finds the image by build id, else by device and inode,
  // else opens it. A mapping whose file cannot be read or is no ELF gives a module without CFI and
  // with image == kNoImage for anonymous memory, or an image that is known by name only.
  unwind::Module module_for(const MappingFacts& mapping);

  std::shared_ptr<const LoadedImage> image(unwind::ImageId id) const;
  size_t size() const;

  // Files that could not be opened or parsed, with the reason, each once; for the summary.
  const std::vector<std::string>& problems() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sentry_prof::target
