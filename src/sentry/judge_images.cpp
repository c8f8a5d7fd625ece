#include "sentry/judge_images.h"

#include "sentry/element_reports.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

// Images that have a place in the address space, as the server looks an address up: sorted, the
// last one that begins at or below it, unless the address lies behind its end.
class ImageSpace {
 public:
  explicit ImageSpace(const std::vector<ImageFact>& images)
      : images_(images), is_hit_(images.size()) {
    // "0x0" is how producers say that an image has no address.
    for (size_t i = 0; i < images.size(); ++i) {
      if (images[i].image_addr.value_or(0) != 0) order_.push_back(i);
    }
    is_sorted_ = std::is_sorted(order_.begin(), order_.end(), before());
    std::stable_sort(order_.begin(), order_.end(), before());
  }

  bool is_empty() const { return order_.empty(); }
  bool was_sorted() const { return is_sorted_; }
  const std::vector<size_t>& order() const { return order_; }
  bool is_hit(size_t image) const { return is_hit_[image]; }

  bool look_up(uint64_t address) {
    const auto behind = std::upper_bound(
        order_.begin(), order_.end(), address,
        [this](uint64_t wanted, size_t image) { return wanted < *images_[image].image_addr; });
    if (behind == order_.begin()) return false;
    const size_t image = *std::prev(behind);
    if (address > last_address(image)) return false;
    is_hit_[image] = true;
    return true;
  }

  // Without a size an image reaches up to the next one. Like the server, one address more than the
  // size says.
  uint64_t last_address(size_t image) const {
    const uint64_t size = images_[image].image_size;
    const uint64_t begin = *images_[image].image_addr;
    return size == 0 || size > UINT64_MAX - begin ? UINT64_MAX : begin + size;
  }

 private:
  struct Before {
    const std::vector<ImageFact>& images;
    bool operator()(size_t a, size_t b) const {
      return *images[a].image_addr < *images[b].image_addr;
    }
  };
  Before before() const { return {images_}; }

  const std::vector<ImageFact>& images_;
  std::vector<size_t> order_;
  std::vector<bool> is_hit_;
  bool is_sorted_ = true;
};

std::string pointer_to(size_t image) { return fmt::format("/debug_meta/images/{}", image); }

void judge_overlaps(const ProfileFacts& facts, const ImageSpace& space, ProblemList& problems) {
  const std::vector<size_t>& order = space.order();
  size_t widest = 0;  // in order: of the images so far the one that reaches furthest
  for (size_t i = 1; i < order.size(); ++i) {
    const ImageFact& image = facts.images[order[i]];
    const uint64_t end = space.last_address(order[widest]);
    const bool is_bounded = facts.images[order[widest]].image_size != 0;
    const bool overlaps = (is_bounded && *image.image_addr < end) ||
                          *image.image_addr == *facts.images[order[i - 1]].image_addr;
    if (overlaps && problems.lists("images-overlap")) {
      problems.add(
          "images-overlap", pointer_to(order[i]), image.offset,
          fmt::format("this image begins at {:#x}, inside image {}", *image.image_addr,
                      is_bounded && *image.image_addr < end ? order[widest] : order[i - 1]));
    } else if (overlaps) {
      problems.count("images-overlap");
    }
    if (!is_bounded || (image.image_size != 0 && space.last_address(order[i]) > end)) widest = i;
  }
}

void judge_unused(const ProfileFacts& facts, const ImageSpace& space, ProblemList& problems) {
  for (const size_t i : space.order()) {
    if (space.is_hit(i)) continue;
    if (!problems.lists("image-unused")) {
      problems.count("image-unused");
      continue;
    }
    problems.add("image-unused", pointer_to(i), facts.images[i].offset,
                 "no frame's address lies in this image");
  }
}

void judge_addresses(const ProfileFacts& facts, std::string_view text, ImageSpace& space,
                     ProblemList& problems) {
  size_t first = SIZE_MAX;
  size_t outside = 0;
  for (size_t i = 0; i < facts.frames.size(); ++i) {
    if (!facts.frames[i].has_address || space.look_up(facts.frames[i].instruction_addr)) continue;
    if (outside++ == 0) first = i;
  }
  if (outside == 0) return;
  ElementReports reports(text, facts.frames_offset, "/profile/frames", problems);
  if (!reports.takes("frame-image")) return;
  reports.add(
      "frame-image", first, "instruction_addr",
      fmt::format("the addresses of {} of {} frames, this one first, lie in no image: Sentry "
                  "cannot symbolicate them",
                  outside, facts.frame_count));
  std::move(reports).report();
}

void judge_image_order(const ProfileFacts& facts, const ImageSpace& space, ProblemList& problems) {
  if (space.was_sorted() || !problems.lists("images-order")) return;
  uint64_t previous = 0;
  for (size_t i = 0; i < facts.images.size(); ++i) {
    const uint64_t begin = facts.images[i].image_addr.value_or(0);
    if (begin != 0 && begin < previous) {
      problems.add(
          "images-order", pointer_to(i), facts.images[i].offset,
          fmt::format("this image begins at {:#x}, one before it at {:#x}", begin, previous));
      return;
    }
    if (begin != 0) previous = begin;
  }
}

void judge_debug_ids(const ProfileFacts& facts, ProblemList& problems) {
  for (size_t i = 0; i < facts.images.size(); ++i) {
    const ImageFact& image = facts.images[i];
    if (!image.debug_id || !image.debug_id->is_nil()) continue;
    if (!problems.lists("image-debug-id-nil")) {
      problems.count("image-debug-id-nil");
      continue;
    }
    problems.add("image-debug-id-nil", pointer_to(i), image.offset,
                 "debug_id is all zeros: Sentry finds no debug file for this image");
  }
}

}  // namespace

void judge_images(const ProfileFacts& facts, std::string_view text, ProblemList& problems,
                  ProfileSummary& summary) {
  summary.images += facts.image_count;
  judge_debug_ids(facts, problems);
  ImageSpace space(facts.images);
  if (space.is_empty()) return;
  judge_image_order(facts, space, problems);
  judge_overlaps(facts, space, problems);
  if (!facts.frames_are_typed) return;
  judge_addresses(facts, text, space, problems);
  judge_unused(facts, space, problems);
}

}  // namespace sentry_prof::sentry
