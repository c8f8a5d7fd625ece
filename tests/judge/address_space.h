// The tracee's images, found and read by the product's own code, and names for their addresses.
#pragma once

#include "target/image_store.h"
#include "target/process_table.h"
#include "unwind/module_map.h"
#include "unwind/walk.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sentry_prof::judge {

class AddressSpace {
 public:
  AddressSpace();

  // Reads the maps again, as when a session attaches.
  void reload(int pid);
  const unwind::ModuleMap& modules() const { return *modules_; }

  uint64_t runtime_pc(const unwind::WalkedFrame& frame) const {
    return frame.image < biases_.size() ? frame.pc + biases_[frame.image] : frame.pc;
  }

  // A place that outlives the mapping.
  struct Place {
    unwind::ImageId image = unwind::kNoImage;
    uint64_t link_pc = 0;  // without an image: the runtime address
    auto operator<=>(const Place&) const = default;
  };
  Place place_of(uint64_t runtime_pc) const;
  // The image's name and the function that holds each place.
  std::vector<std::string> functions_of(const std::vector<Place>& sorted_places) const;

 private:
  static std::string nameless(const target::LoadedImage* image, LinkAddress pc);
  std::string image_name(unwind::ImageId image) const;

  std::unique_ptr<target::ImageOpener> opener_;
  target::ImageStore images_;
  target::ProcessTable processes_;
  const unwind::ModuleMap* modules_ = nullptr;
  std::vector<uint64_t> biases_;  // by image
};

}  // namespace sentry_prof::judge
