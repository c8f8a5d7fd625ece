#include "recorder/image_catalog.h"

#include "elf/function_starts.h"
#include "symbols/symbol_names.h"

#include <algorithm>

namespace sentry_prof::recorder {

uint32_t AnonymousRegions::number_of(uint32_t pid, uint64_t begin, uint64_t end) {
  const auto [entry, is_new] = by_begin_.try_emplace({pid, begin}, 0);
  if (!is_new) {
    // The same region may have grown; a place that is too small would overlap its neighbour.
    Region& known = regions_[entry->second - kFirst];
    if (known.end >= end) return entry->second;
  }
  if (regions_.size() >= kMaxRegions) {
    if (is_new) by_begin_.erase(entry);
    return profile::FrameKey::kNoImage;
  }
  entry->second = kFirst + static_cast<uint32_t>(regions_.size());
  regions_.push_back({pid, begin, end});
  return entry->second;
}

ChunkImages images_of_chunk(const profile::RawChunk& chunk, const target::ImageStore& images,
                            const AnonymousRegions& regions) {
  ChunkImages result;
  for (const profile::FrameKey& frame : chunk.frames) {
    if (frame.image == profile::FrameKey::kNoImage) continue;
    if (frame.image >= AnonymousRegions::kFirst) {
      result.regions.try_emplace(frame.image, regions.region(frame.image));
    } else if (!result.files.contains(frame.image)) {
      auto image = images.image(frame.image);
      result.function_starts.emplace(frame.image, image->function_starts());
      result.files.emplace(frame.image, std::move(image));
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
LinkAddress lookup_address(const profile::FrameKey& frame) {
  return {frame.is_exact || frame.pc == 0 ? frame.pc : frame.pc - 1};
}

}  // namespace

SymbolFrameNames::SymbolFrameNames(ChunkImages images) : images_(std::move(images)) {
  for (const auto& [number, image] : images_.files) facts_.emplace(number, facts_of(*image));
  for (const auto& [number, region] : images_.regions) facts_.emplace(number, facts_of(region));
  unknown_.is_file = false;
}

const profile::ImageFacts& SymbolFrameNames::image(uint32_t image) const {
  const auto found = facts_.find(image);
  return found == facts_.end() ? unknown_ : found->second;
}

std::vector<std::string> SymbolFrameNames::names_of(std::span<const profile::FrameKey> frames) {
  std::unordered_map<uint32_t, std::vector<uint32_t>> members;
  for (uint32_t i = 0; i < frames.size(); ++i) {
    if (images_.files.contains(frames[i].image)) members[frames[i].image].push_back(i);
  }
  std::vector<std::string> names(frames.size());
  for (auto& [image, indices] : members) {
    name_frames_of(*images_.files.at(image), frames, std::move(indices), names);
  }
  return names;
}

std::optional<uint64_t> SymbolFrameNames::function_start(const profile::FrameKey& frame) const {
  const auto found = images_.function_starts.find(frame.image);
  if (found == images_.function_starts.end() || !found->second) return std::nullopt;
  const auto start = found->second->start_at(lookup_address(frame));
  return start ? std::optional(start->value) : std::nullopt;
}

void SymbolFrameNames::name_frames_of(const target::LoadedImage& image,
                                      std::span<const profile::FrameKey> frames,
                                      std::vector<uint32_t> members,
                                      std::vector<std::string>& names) const {
  std::sort(members.begin(), members.end(), [&](uint32_t a, uint32_t b) {
    return lookup_address(frames[a]) < lookup_address(frames[b]);
  });
  std::vector<LinkAddress> addresses;
  addresses.reserve(members.size());
  for (uint32_t i : members) addresses.push_back(lookup_address(frames[i]));
  auto found = symbols::names_at(image.file(), image.layout(), addresses);
  for (size_t i = 0; i < members.size(); ++i) {
    if (found[i]) names[members[i]] = std::move(*found[i]);
  }
}

}  // namespace sentry_prof::recorder
