// What keeps an image store small in a session that goes on for months.
#include "target/image_store.h"

#include <algorithm>
#include <functional>

namespace sentry_prof::target {

void ImageStore::refill_budget() { cfi_budget_->refill(); }

std::vector<unwind::ImageId> ImageStore::forget_unmapped(const ImageIds& mapped) {
  const std::vector<unwind::ImageId> gone =
      longest_unused(mapped, is_short_of_files_ ? 0 : kMaxUnmapped);
  is_short_of_files_ = false;
  for (const unwind::ImageId id : gone) forget_image(id);
  const ImageIds gone_ids(gone.begin(), gone.end());
  for (KnownFiles* files : {&by_build_id_and_path_, &by_file_}) {
    if (!gone.empty()) forget_keys_of(*files, gone_ids);
    forget_spare_keys(*files);
  }
  return gone;
}

void ImageStore::add_last_uses(const KnownFiles& files, LastUses& last_uses) {
  for (const auto& [key, known] : files) {
    uint64_t& last_use = last_uses[known.image];
    last_use = std::max(last_use, known.last_use);
  }
}

// Those above the limits, of which `max_unmapped` is one.
std::vector<unwind::ImageId> ImageStore::longest_unused(const ImageIds& mapped,
                                                        size_t max_unmapped) const {
  LastUses last_uses;
  for (const KnownFiles* files : {&by_build_id_and_path_, &by_file_}) {
    add_last_uses(*files, last_uses);
  }
  std::vector<std::pair<uint64_t, const LoadedImage*>> unmapped;
  for (const auto& [id, image] : images_) {
    if (!mapped.contains(id)) unmapped.emplace_back(last_uses[id], image.get());
  }
  std::ranges::sort(unmapped, std::greater(), [](const auto& entry) { return entry.first; });
  std::vector<unwind::ImageId> ids;
  uint64_t cfi_bytes = 0;
  for (size_t i = 0; i < unmapped.size(); ++i) {
    const LoadedImage& image = *unmapped[i].second;
    cfi_bytes += image.cfi_bytes();
    if (i >= max_unmapped || cfi_bytes > kMaxUnmappedCfi_bytes) ids.push_back(image.id());
  }
  return ids;
}

// The finishing thread may hold it for a while: the CFI's memory is the recording thread's to
// count.
void ImageStore::forget_image(unwind::ImageId id) {
  const auto found = images_.find(id);
  LoadedImage& image = *found->second;
  for (std::string& problem : problems_of(image)) note_problem(std::move(problem));
  if (image.debug_cfi().was_of_use()) ++forgotten_with_debug_cfi_;
  image.forget_cfi();
  const auto same = by_content_.find(content_key(image.identity(), image.layout()));
  if (same != by_content_.end() && same->second == id) by_content_.erase(same);
  unanswered_.erase(id);
  read_in_processes_.erase(id);
  newest_pid_.erase(id);
  images_.erase(found);
}

void ImageStore::forget_keys_of(KnownFiles& files, const ImageIds& gone) {
  for (auto it = files.begin(); it != files.end();) {
    const auto current = it++;
    if (gone.contains(current->second.image)) forget_key(files, current);
  }
}

// No image is lost without those that have none, nor without any but the one that was used last.
void ImageStore::forget_spare_keys(KnownFiles& files) {
  if (files.size() <= kMaxSpareKeys) return;
  LastUses last_uses;
  add_last_uses(files, last_uses);
  std::vector<std::pair<uint64_t, KnownFiles::iterator>> spare;
  for (auto it = files.begin(); it != files.end(); ++it) {
    const Known& known = it->second;
    const bool is_needed =
        known.image != unwind::kNoImage && known.last_use == last_uses[known.image];
    if (!is_needed) spare.emplace_back(known.last_use, it);
  }
  if (spare.size() <= kMaxSpareKeys) return;
  std::ranges::sort(spare, {}, [](const auto& entry) { return entry.first; });
  spare.resize(spare.size() - kMaxSpareKeys);
  for (const auto& [last_use, key] : spare) forget_key(files, key);
}

void ImageStore::forget_key(KnownFiles& files, KnownFiles::iterator key) {
  paths_bytes_ -= key->second.path_bytes;
  if (key->second.problem) keep_problem(std::move(*key->second.problem));
  files.erase(key);
}

}  // namespace sentry_prof::target
