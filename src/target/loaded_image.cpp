#include "target/image_store.h"

namespace sentry_prof::target {

LoadedImage::LoadedImage(unwind::ImageId id, std::string path,
                         std::shared_ptr<const ByteSource> file, elf::Layout layout,
                         elf::Identity identity, RuntimeAddress first_seen)
    : id_(id),
      path_(std::move(path)),
      file_(std::move(file)),
      layout_(std::move(layout)),
      identity_(std::move(identity)),
      first_seen_(first_seen),
      size_in_memory_bytes_(layout_.size_in_memory_bytes()) {}

std::shared_ptr<LoadedImage> LoadedImage::known_by_name(unwind::ImageId id, std::string path,
                                                        elf::Identity identity,
                                                        const MappingFacts& first_mapping) {
  auto no_bytes = std::make_shared<MemoryByteSource>(std::vector<std::byte>());
  const RuntimeAddress first_seen{first_mapping.begin.value - first_mapping.file_offset};
  auto image = std::make_shared<LoadedImage>(id, std::move(path), std::move(no_bytes),
                                             elf::Layout(), std::move(identity), first_seen);
  image->size_in_memory_bytes_ = first_mapping.file_offset + first_mapping.size_bytes;
  return image;
}

unwind::RowStatus LoadedImage::row_at(LinkAddress pc, unwind::Row& row) const {
  if (!cfi_was_tried_) load_cfi();
  return cfi_ == nullptr ? unwind::RowStatus::NoCfi : cfi_->row_at(pc, row);
}

void LoadedImage::load_cfi() const {
  cfi_was_tried_ = true;
  if (is_known_by_name_only()) return;
  auto sections = elf::read_cfi_sections(*file_, layout_);
  if (!sections) {
    cfi_error_ = std::move(sections.error().message);
    return;
  }
  cfi_ = std::make_unique<elf::CfiTable>(std::move(*sections));
}

}  // namespace sentry_prof::target
