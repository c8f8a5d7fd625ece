// The lists of a profile as wholes: samples, stacks, frames and the names of threads and queues.
// See repair.h.
#pragma once

#include "sentry/repair_changes.h"
#include "sentry_prof/validate.h"

#include <optional>
#include <string>
#include <string_view>

namespace sentry_prof::sentry {

// Nothing if nothing has to change, or if the lists cannot be understood. No field of `text` is
// there twice.
std::optional<std::string> mend_lists(std::string_view text, ValidatedKind kind,
                                      ChangeList& changes);

}  // namespace sentry_prof::sentry
