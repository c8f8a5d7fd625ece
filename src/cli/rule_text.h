// `validate --explain`: the rules as text for people.
#pragma once

#include "sentry_prof/result.h"

#include <string>
#include <string_view>

namespace sentry_prof::cli {

// `what` is a rule's id, one of the server's reasons (its rule, or a list of its rules where there
// are several) or "all". InvalidArgument for anything else, with the ids that are spelled most
// alike.
Result<std::string> explain(std::string_view what);

}  // namespace sentry_prof::cli
