#include "unwind/code_stretches.h"

#include <algorithm>

namespace sentry_prof::unwind {

CodeStretch CodeStretches::at_or_behind(ImageId image, LinkAddress pc) const {
  CodeStretch nearest;
  for (const Known& known : known_) {
    const CodeStretch& stretch = known.stretch;
    if (known.image != image || stretch.end <= pc) continue;
    if (nearest.is_empty() || stretch.begin < nearest.begin) nearest = stretch;
  }
  return nearest;
}

void CodeStretches::add(ImageId image, const CodeStretch& stretch) {
  if (stretch.is_empty() || stretch.rule.kind == CompactKind::NoCfi) return;
  const auto reached = std::ranges::find_if(known_, [&](const Known& known) {
    return known.image == image && known.stretch.begin <= stretch.end &&
           stretch.begin <= known.stretch.begin && known.stretch.rule == stretch.rule;
  });
  if (reached != known_.end()) {
    reached->stretch = {stretch.begin, std::max(stretch.end, reached->stretch.end), stretch.rule};
    return;
  }
  known_[oldest_] = {image, stretch};
  oldest_ = (oldest_ + 1) % known_.size();
}

}  // namespace sentry_prof::unwind
