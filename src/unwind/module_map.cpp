#include "unwind/module_map.h"

#include <algorithm>
#include <atomic>

namespace sentry_prof::unwind {
namespace {

// The first module that ends above `address`.
auto first_ending_after(const std::vector<Module>& modules, RuntimeAddress address) {
  return std::upper_bound(modules.begin(), modules.end(), address,
                          [](RuntimeAddress a, const Module& module) { return a < module.end; });
}

uint64_t next_version() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

void ModuleMap::insert(const Module& module) {
  if (module.begin >= module.end) return;
  const auto first = first_ending_after(modules_, module.begin);
  auto last = first;
  while (last != modules_.end() && last->begin < module.end) ++last;

  std::vector<Module> pieces;
  pieces.reserve(3);
  if (first != last && first->begin < module.begin) {
    pieces.push_back(*first);
    pieces.back().end = module.begin;
  }
  pieces.push_back(module);
  if (first != last && (last - 1)->end > module.end) {
    pieces.push_back(*(last - 1));
    pieces.back().begin = module.end;
  }
  version_ = next_version();
  const auto position = modules_.erase(first, last);
  modules_.insert(position, pieces.begin(), pieces.end());
}

void ModuleMap::clear() {
  version_ = next_version();
  modules_.clear();
  has_hotspot_ = false;
}

const Module* ModuleMap::find(RuntimeAddress address) const {
  const auto found = first_ending_after(modules_, address);
  return found != modules_.end() && found->begin <= address ? &*found : nullptr;
}

const Module* ModuleMap::find_image(ImageId image) const {
  const auto found = std::ranges::find(modules_, image, &Module::image);
  return found == modules_.end() || image == kNoImage ? nullptr : &*found;
}

}  // namespace sentry_prof::unwind
