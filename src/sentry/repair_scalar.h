// Single values: the same value in the form that is asked for.
#pragma once

#include "sentry/field_tables.h"
#include "sentry/repair_changes.h"
#include "sentry/scalar.h"

#include <optional>
#include <string>
#include <string_view>

namespace sentry_prof::sentry {

struct MendedScalar {
  std::string json;
  Change change;
};

// Nothing if the value has its form, or if none can be found without guessing. `own_version`: of
// the format that the profile is in.
std::optional<MendedScalar> mend_scalar(const Field& field, const Scalar& scalar,
                                        std::string_view own_version);

// An address in a string, in hex digits without "0x", that cannot be decimal: the others of its
// text may be meant the same way.
bool is_bare_hex_address(const Scalar& scalar);
// An address in a string that the server reads as decimal.
bool is_decimal_address(const Scalar& scalar);

}  // namespace sentry_prof::sentry
