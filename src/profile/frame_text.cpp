#include "profile/frame_text.h"

#include "base/path.h"
#include "base/utf8.h"
#include "profile/bounded_text.h"

#include <fmt/format.h>

namespace sentry_prof::profile {
namespace {

// All frames of a function read the same if it is known where the function begins.
uint64_t shown_address(const FrameKey& frame, const FrameNames& names, uint64_t image_begin) {
  const std::optional<uint64_t> start = names.function_start(frame);
  return start && *start >= image_begin ? *start : frame.pc;
}

std::string fallback_name(const FrameKey& frame, const FrameNames& names) {
  if (frame.image == FrameKey::kNoImage) return fmt::format("{:#x}", frame.pc);
  const Image& image = names.image(frame.image).image;
  const std::string base = bounded_path(base_name(image.code_file));
  return fmt::format("{}+{:#x}", base.empty() ? "[anon]" : base,
                     shown_address(frame, names, image.image_vmaddr) - image.image_vmaddr);
}

void keep_within_budget(std::vector<std::string>& texts) {
  uint64_t total_bytes = 0;
  for (const std::string& text : texts) total_bytes += json_text_bytes(text);
  if (total_bytes <= texts.size() * kFrameName_bytes) return;
  for (std::string& text : texts) text = shortened_for_json(text, kFrameName_bytes);
}

}  // namespace

std::vector<std::string> frame_texts(std::span<const FrameKey> frames, FrameNames& names) {
  std::vector<std::string> texts = names.names_of(frames);
  texts.resize(frames.size());
  for (size_t i = 0; i < frames.size(); ++i) {
    if (texts[i].empty()) {
      texts[i] = fallback_name(frames[i], names);
    } else if (printable_ascii_length(texts[i]) != texts[i].size()) {
      texts[i] = printable_utf8(texts[i]);
    }
  }
  keep_within_budget(texts);
  return texts;
}

}  // namespace sentry_prof::profile
