// What a walk needs to know of an address space: which image is mapped executable where.
#pragma once

#include "base/address.h"
#include "unwind/code_source.h"
#include "unwind/row.h"

#include <cstdint>
#include <vector>

namespace sentry_prof::unwind {

using ImageId = uint32_t;  // a session-wide number, given by target's image store
inline constexpr ImageId kNoImage =
    UINT32_MAX;  // anonymous memory, or a file that could not be read

struct Module {
  RuntimeAddress begin;
  RuntimeAddress end;
  LoadBias bias;
  ImageId image = kNoImage;
  const CfiSource* cfi =
      nullptr;  // not owned; outlives every map it is in; null: no unwind information
  const CodeSource* code = nullptr;  // of the image; as `cfi`. Null: none can be looked at
};

// Sorted, non-overlapping. Copying it is how fork works.
class ModuleMap {
 public:
  // A new mapping replaces whatever it overlaps; what sticks out on either side stays.
  void insert(const Module& module);
  void clear();
  // Null if nothing executable is mapped there.
  const Module* find(RuntimeAddress address) const;
  // The lowest of an image's; null if it is not mapped, and for kNoImage.
  const Module* find_image(ImageId image) const;
  const std::vector<Module>& modules() const { return modules_; }
  // Whether the code that no file holds may be of HotSpot's compilers: the Java virtual machine is
  // mapped.
  bool has_hotspot() const { return has_hotspot_; }
  void set_has_hotspot() { has_hotspot_ = true; }
  // Equal only for maps of equal modules, whichever they are: it is new after each change. 0: none
  // was ever made.
  uint64_t version() const { return version_; }

 private:
  std::vector<Module> modules_;
  uint64_t version_ = 0;
  bool has_hotspot_ = false;
};

}  // namespace sentry_prof::unwind
