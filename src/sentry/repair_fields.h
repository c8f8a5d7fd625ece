// The fields of a profile, one by one: names and forms. See repair.h.
#pragma once

#include "sentry/repair_changes.h"
#include "sentry_prof/validate.h"

#include <string>
#include <string_view>

namespace sentry_prof::sentry {

struct MendedFields {
  bool is_whole = false;  // if not, nothing was mended
  bool is_changed = false;
  bool has_repeated = false;  // a field is there twice, somewhere
  std::string text;           // if it is changed
  ChangeList changes;
};

// `kind` is V1 or V2.
MendedFields mend_fields(std::string_view text, ValidatedKind kind);

}  // namespace sentry_prof::sentry
