// What a frame is called in the profile.
#pragma once

#include "profile/finish_chunk.h"

#include <span>
#include <string>
#include <vector>

namespace sentry_prof::profile {

struct FrameText {
  std::string text;
  bool is_name = false;  // of the function
};

// One text a frame, never empty, printable UTF-8: the function's name; else `libfoo.so+0x1234`,
// `[anon]+0x1234` (offset of the function's begin, or of the pc where that is not known, from the
// beginning of the image or the anonymous memory); else the runtime address. If all together take
// more than kFrameName_bytes a frame, long ones are shortened to that.
std::vector<FrameText> frame_texts(std::span<const FrameKey> frames, FrameNames& names);

}  // namespace sentry_prof::profile
