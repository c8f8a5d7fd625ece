#include "address_space.h"

#include "elf/function_starts.h"
#include "symbols/symbol_names.h"
#include "target/proc.h"

#include <stdexcept>

#include <fmt/format.h>

namespace sentry_prof::judge {

AddressSpace::AddressSpace()
    : opener_(target::make_proc_opener()), images_(*opener_), processes_(images_) {}

void AddressSpace::reload(int pid) {
  const auto snapshot = target::read_process(pid);
  if (!snapshot) throw std::runtime_error(snapshot.error().message);
  processes_.on_snapshot(*snapshot);
  modules_ = &processes_.process(static_cast<uint32_t>(pid)).modules;
  for (const unwind::Module& module : modules_->modules()) {
    if (module.image == unwind::kNoImage) continue;
    if (module.image >= biases_.size()) biases_.resize(module.image + 1);
    biases_[module.image] = module.bias.value;
  }
}

AddressSpace::Place AddressSpace::place_of(uint64_t runtime_pc) const {
  const unwind::Module* module = modules_->find({runtime_pc});
  if (module == nullptr || module->image == unwind::kNoImage) {
    return {unwind::kNoImage, runtime_pc};
  }
  return {module->image, to_link({runtime_pc}, module->bias).value};
}

std::string AddressSpace::image_name(unwind::ImageId image) const {
  const auto loaded = images_.image(image);
  if (!loaded) return "(no image)";
  return loaded->path().substr(loaded->path().rfind('/') + 1);
}

// By unwind information. What has neither name nor unwind information is one class of an image:
// there are dozens of such pieces in crti.o and crtbegin.o.
std::string AddressSpace::nameless(const target::LoadedImage* image, LinkAddress pc) {
  if (image == nullptr) return fmt::format("{:#x}", pc.value);
  const auto starts = image->function_starts();
  const auto function = starts ? starts->function_at(pc) : std::nullopt;
  return function ? fmt::format("fn_{:#x}", function->begin.value) : "(no name, no CFI)";
}

std::vector<std::string> AddressSpace::functions_of(const std::vector<Place>& sorted_places) const {
  std::vector<std::string> names;
  for (size_t begin = 0; begin < sorted_places.size();) {
    const unwind::ImageId image = sorted_places[begin].image;
    std::vector<LinkAddress> addresses;
    for (size_t i = begin; i < sorted_places.size() && sorted_places[i].image == image; ++i) {
      addresses.push_back({sorted_places[i].link_pc});
    }
    const auto loaded = images_.image(image);
    symbols::SymbolBudget budget;
    const auto starts = loaded ? loaded->function_starts() : nullptr;
    const auto found = loaded ? symbols::names_at(loaded->file(), loaded->layout(), addresses,
                                                  budget, starts.get())
                              : std::vector<std::optional<std::string>>(addresses.size());
    for (size_t i = 0; i < addresses.size(); ++i) {
      names.push_back(fmt::format("{}:{}", image_name(image),
                                  found[i] ? *found[i] : nameless(loaded.get(), addresses[i])));
    }
    begin += addresses.size();
  }
  return names;
}

}  // namespace sentry_prof::judge
