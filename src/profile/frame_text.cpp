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

FrameText text_of(std::string name, const FrameKey& frame, const FrameNames& names) {
  if (name.empty()) return {fallback_name(frame, names), false};
  const bool is_printable = printable_ascii_length(name) == name.size();
  return {is_printable ? std::move(name) : printable_utf8(name), true};
}

void keep_within_budget(std::vector<FrameText>& texts) {
  uint64_t total_bytes = 0;
  for (const FrameText& frame : texts) total_bytes += json_text_bytes(frame.text);
  if (total_bytes <= texts.size() * kFrameName_bytes) return;
  for (FrameText& frame : texts) frame.text = shortened_for_json(frame.text, kFrameName_bytes);
}

}  // namespace

std::vector<FrameText> frame_texts(std::span<const FrameKey> frames, FrameNames& names) {
  std::vector<std::string> found = names.names_of(frames);
  found.resize(frames.size());
  std::vector<FrameText> texts;
  texts.reserve(frames.size());
  for (size_t i = 0; i < frames.size(); ++i) {
    texts.push_back(text_of(std::move(found[i]), frames[i], names));
  }
  keep_within_budget(texts);
  return texts;
}

}  // namespace sentry_prof::profile
