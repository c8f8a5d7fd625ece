#include "target/local_opener.h"

#include "base/hex.h"
#include "base/time_units.h"
#include "os/errors.h"
#include "os/fd.h"
#include "target/image_files.h"
#include "target/mapping_kind.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace sentry_prof::target {

namespace {

using OpenResult = Result<std::shared_ptr<const ByteSource>>;

// As GDB's manual lays out debug files: DIRECTORY/.build-id/XX/YYY.debug.
bool is_debug_file(const MappingFacts& mapping) {
  const std::string id = to_hex(mapping.build_id);
  if (id.size() < 4) return false;
  return mapping.path.ends_with("/.build-id/" + id.substr(0, 2) + '/' + id.substr(2) + ".debug");
}

class LocalOpener final : public ImageOpener {
 public:
  explicit LocalOpener(LocalFiles files) : files_(std::move(files)) {}

  OpenResult open(const MappingFacts& mapping) override {
    const MappingKind kind = kind_of_mapping(mapping.path);
    if (kind == MappingKind::Vdso) return open_vdso(mapping);
    if (kind != MappingKind::File || !mapping.path.starts_with('/')) {
      return fail(ErrorCode::Unsupported, "no file");
    }
    auto file = open_named(mapping);
    if (file || mapping.build_id.empty()) return file;
    auto copy = open_cached(mapping, "elf");
    return copy ? std::move(copy) : std::move(file);
  }

  // After another file was found in the mapping's place; or a debug file, which was never mapped.
  OpenResult open_by_path(const MappingFacts& mapping) override {
    if (is_debug_file(mapping)) return open_debug_file(mapping);
    const bool is_vdso = kind_of_mapping(mapping.path) == MappingKind::Vdso;
    if (auto copy = open_cached(mapping, is_vdso ? "vdso" : "elf")) return copy;
    return fail(ErrorCode::NotFound,
                is_vdso ? "the vdso of another kernel" : "its build id is not the recorded one's");
  }
  OpenResult open_mapped(const MappingFacts& /*mapping*/) override {
    return fail(ErrorCode::Gone, "its process has ended");
  }

 private:
  OpenResult open_vdso(const MappingFacts& mapping) const {
    if (mapping.build_id.empty() && !files_.has_own_kernel) {
      return fail(ErrorCode::NotFound, "no build id tells which kernel's it is");
    }
    auto own = copy_own_vdso(mapping.size_bytes);
    return own ? std::move(own) : open_cached(mapping, "vdso");
  }

  // perf's cache has some, too (perf buildid-cache --add).
  OpenResult open_debug_file(const MappingFacts& mapping) const {
    auto file = open_named(mapping);
    if (file) return file;
    auto copy = open_cached(mapping, "debug");
    return copy ? std::move(copy) : std::move(file);
  }

  OpenResult open_named(const MappingFacts& mapping) const {
    const os::Fd found(::open(mapping.path.c_str(), O_PATH | O_CLOEXEC));
    if (!found.is_open()) return os::fail_with_errno(errno, "cannot be opened");
    if (mapping.build_id.empty()) {
      if (auto ok = check_unchanged(found, mapping); !ok) return tl::unexpected(ok.error());
    }
    return open_regular_file(found);
  }

  // Not the device: btrfs and overlayfs tell stat() another one than they tell maps.
  Result<void> check_unchanged(const os::Fd& found, const MappingFacts& mapping) const {
    const auto facts = facts_of(found);
    if (!facts) return os::fail_with_errno(errno, "statx");
    if (mapping.inode == 0 || facts->inode != mapping.inode) {
      return fail(ErrorCode::NotFound,
                  "another file has that name here, or now, and the recording has no build id of "
                  "it (perf record --buildid-all)");
    }
    if (facts->changed_unix_ns > files_.recorded_unix_ns) {
      return fail(ErrorCode::NotFound,
                  "was changed after the recording began, which has no build id of it (perf record "
                  "--buildid-all)");
    }
    return {};
  }

  OpenResult open_cached(const MappingFacts& mapping, const char* name) const {
    const std::string id = to_hex(mapping.build_id);
    if (id.size() < 4 || files_.build_id_cache.empty()) {
      return fail(ErrorCode::NotFound, "has no copy in perf's cache");
    }
    const std::string path =
        files_.build_id_cache + "/.build-id/" + id.substr(0, 2) + '/' + id.substr(2) + '/' + name;
    const os::Fd found(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!found.is_open()) return fail(ErrorCode::NotFound, "has no copy in perf's cache");
    return open_regular_file(found);
  }

  LocalFiles files_;
};

}  // namespace

std::unique_ptr<ImageOpener> make_local_opener(LocalFiles files) {
  return std::make_unique<LocalOpener>(std::move(files));
}

}  // namespace sentry_prof::target
