#include "recorder/image_catalog.h"

#include "elf/function_starts.h"
#include "os/clock.h"

#include <algorithm>

namespace sentry_prof::recorder {

ChunkImages images_of_chunk(const profile::RawChunk& chunk, const target::ImageStore& images,
                            const AnonymousRegions& regions) {
  ChunkImages result;
  result.jit_maps = regions.jit_maps();
  for (const profile::FrameKey& frame : chunk.frames) {
    if (frame.image == profile::FrameKey::kNoImage) continue;
    if (frame.image >= AnonymousRegions::kFirst) {
      result.regions.try_emplace(frame.image, regions.region(frame.image));
    } else if (!result.files.contains(frame.image)) {
      auto image = images.image(frame.image);
      if (image == nullptr) continue;
      auto function_starts = image->function_starts();
      auto debug_file = image->debug_file();
      result.files.emplace(
          frame.image,
          ChunkImages::File{std::move(image), std::move(function_starts), std::move(debug_file)});
    }
  }
  return result;
}

namespace {

profile::ImageFacts facts_of(const target::LoadedImage& image) {
  profile::ImageFacts facts;
  facts.image.code_file = image.path();
  facts.image.code_id = image.identity().code_id;
  facts.image.debug_id = image.identity().debug_id;
  facts.image.arch = elf::architecture_name(image.layout());
  facts.image.image_size = image.size_in_memory_bytes();
  facts.image.image_vmaddr = image.layout().first_vaddr().value;
  facts.first_seen_addr = image.first_seen().value;
  return facts;
}

profile::ImageFacts facts_of(const AnonymousRegions::Region& region) {
  profile::ImageFacts facts;
  facts.image.image_size = region.end - region.begin;
  facts.image.image_vmaddr = region.begin;
  facts.first_seen_addr = region.begin;
  facts.is_file = false;
  return facts;
}

// A return address points behind its call, which may be the last instruction of its function.
uint64_t lookup_pc(const profile::FrameKey& frame) {
  return frame.is_exact || frame.pc == 0 ? frame.pc : frame.pc - 1;
}

// Sorts the members of `frames` by address, and gives these.
template <typename Address>
std::vector<Address> sorted_addresses(std::span<const profile::FrameKey> frames,
                                      std::vector<uint32_t>& members) {
  std::ranges::sort(members, {}, [&](uint32_t i) { return lookup_pc(frames[i]); });
  std::vector<Address> addresses;
  addresses.reserve(members.size());
  for (uint32_t i : members) addresses.push_back({lookup_pc(frames[i])});
  return addresses;
}

void take_names(std::vector<std::optional<std::string>> found, const std::vector<uint32_t>& members,
                std::vector<profile::FrameName>& names) {
  for (size_t i = 0; i < members.size(); ++i) {
    if (found[i]) names[members[i]].text = std::move(*found[i]);
  }
}

// Where the functions of those without a name begin. `sorted_addresses` are those of the members.
void find_function_starts(const elf::FunctionStarts& starts,
                          std::span<const LinkAddress> sorted_addresses,
                          const std::vector<uint32_t>& members,
                          std::vector<profile::FrameName>& names) {
  elf::SortedFunctionStarts sorted_starts(starts);
  for (size_t i = 0; i < members.size(); ++i) {
    profile::FrameName& name = names[members[i]];
    if (!name.text.empty()) continue;
    const auto start = sorted_starts.start_at(sorted_addresses[i]);
    if (start) name.function_start = start->value;
  }
}

std::optional<symbols::DebugSymbols> debug_symbols_of(const ChunkImages::File& file) {
  if (file.debug_file == nullptr) return std::nullopt;
  const auto layout = elf::read_layout(*file.debug_file);
  if (!layout || !layout->symtab) return std::nullopt;
  return symbols::DebugSymbols{*file.debug_file, *layout->symtab};
}

}  // namespace

SymbolFrameNames::SymbolFrameNames(ChunkImages images) : images_(std::move(images)) {
  for (const auto& [number, file] : images_.files) facts_.emplace(number, facts_of(*file.image));
  for (const auto& [number, region] : images_.regions) facts_.emplace(number, facts_of(region));
  unknown_.is_file = false;
  symbol_budget_.now_ns = &os::thread_cpu_ns;
}

const profile::ImageFacts& SymbolFrameNames::image(uint32_t image) const {
  const auto found = facts_.find(image);
  return found == facts_.end() ? unknown_ : found->second;
}

std::vector<profile::FrameName> SymbolFrameNames::names_of(Frames frames) {
  std::unordered_map<uint32_t, std::vector<uint32_t>> members;
  for (uint32_t i = 0; i < frames.size(); ++i) {
    if (images_.files.contains(frames[i].image)) members[frames[i].image].push_back(i);
  }
  Names names(frames.size());
  for (auto& [image, indices] : members) {
    name_frames_of(images_.files.at(image), frames, std::move(indices), names);
  }
  name_jit_frames(frames, names);
  return names;
}

void SymbolFrameNames::name_frames_of(const ChunkImages::File& file, Frames frames,
                                      std::vector<uint32_t> members, Names& names) {
  const auto addresses = sorted_addresses<LinkAddress>(frames, members);
  take_names(symbols::names_at(file.image->file(), file.image->layout(), addresses, symbol_budget_,
                               file.function_starts.get(), debug_symbols_of(file)),
             members, names);
  if (file.function_starts != nullptr) {
    find_function_starts(*file.function_starts, addresses, members, names);
  }
}

void SymbolFrameNames::name_jit_frames(Frames frames, Names& names) {
  std::unordered_map<uint32_t, std::vector<uint32_t>> members;  // by program
  for (uint32_t i = 0; i < frames.size(); ++i) {
    const auto region = images_.regions.find(frames[i].image);
    if (region == images_.regions.end()) continue;
    ++jit_.frames;
    if (images_.jit_maps.contains(region->second.program)) {
      members[region->second.program].push_back(i);
    }
  }
  for (auto& [program, indices] : members) {
    name_jit_frames_of(images_.jit_maps.at(program), frames, std::move(indices), names);
  }
}

void SymbolFrameNames::name_jit_frames_of(const target::JitMap& jit_map, Frames frames,
                                          std::vector<uint32_t> members, Names& names) {
  const auto file = jit_map();
  if (file == nullptr) return;
  const auto addresses = sorted_addresses<RuntimeAddress>(frames, members);
  symbols::PerfMapNames found = symbols::names_in_perf_map(*file, addresses, jit_budget_);
  jit_.bad_map_lines += found.bad_lines;
  if (found.is_cut) ++jit_.maps_cut;
  jit_.frames_named += static_cast<uint64_t>(
      std::ranges::count_if(found.names, [](const auto& name) { return name.has_value(); }));
  take_names(std::move(found.names), members, names);
}

}  // namespace sentry_prof::recorder
