#include "profile/frame_text.h"

#include "base/path.h"
#include "base/utf8.h"
#include "profile/bounded_text.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/compile.h>
#include <fmt/format.h>

namespace sentry_prof::profile {
namespace {

// What frames without a name are called.
class FallbackNames {
 public:
  explicit FallbackNames(const FrameNames& names) : names_(names) {}

  std::string name_of(const FrameKey& frame, std::optional<uint64_t> function_start) {
    if (frame.image == FrameKey::kNoImage) return fmt::format("{:#x}", frame.pc);
    const uint64_t image_begin = names_.image(frame.image).image.image_vmaddr;
    // All frames of a function read the same if it is known where the function begins.
    const bool has_start = function_start && *function_start >= image_begin;
    const uint64_t shown_address = has_start ? *function_start : frame.pc;
    return fmt::format(FMT_COMPILE("{}+{:#x}"), base_of(frame.image), shown_address - image_begin);
  }

 private:
  const std::string& base_of(uint32_t image) {
    const auto [base, is_new] = bases_.try_emplace(image);
    if (is_new) {
      base->second = bounded_path(base_name(names_.image(image).image.code_file));
      if (base->second.empty()) base->second = "[anon]";
    }
    return base->second;
  }

  const FrameNames& names_;
  std::unordered_map<uint32_t, std::string> bases_;  // the files' names, by image
};

FrameText text_of(std::string name) {
  const bool is_printable = printable_ascii_length(name) == name.size();
  return {is_printable ? std::move(name) : printable_utf8(name), true};
}

void keep_within_budget(std::vector<FrameText>& texts) {
  const uint64_t budget_bytes = texts.size() * kFrameName_bytes;
  uint64_t text_bytes = 0;
  for (const FrameText& frame : texts) text_bytes += frame.text.size();
  if (2 * text_bytes <= budget_bytes) return;  // though every character is escaped
  uint64_t total_bytes = 0;
  for (const FrameText& frame : texts) total_bytes += json_text_bytes(frame.text);
  if (total_bytes <= budget_bytes) return;
  for (FrameText& frame : texts) frame.text = shortened_for_json(frame.text, kFrameName_bytes);
}

}  // namespace

std::vector<FrameText> frame_texts(std::span<const FrameKey> frames, FrameNames& names) {
  std::vector<FrameName> found = names.names_of(frames);
  found.resize(frames.size());
  FallbackNames fallback(names);
  std::vector<FrameText> texts;
  texts.reserve(frames.size());
  for (size_t i = 0; i < frames.size(); ++i) {
    FrameName& name = found[i];
    texts.push_back(name.text.empty()
                        ? FrameText{fallback.name_of(frames[i], name.function_start), false}
                        : text_of(std::move(name.text)));
  }
  keep_within_budget(texts);
  return texts;
}

}  // namespace sentry_prof::profile
