// `validate --format json`; its schema is docs/validate.schema.json.
#pragma once

#include "cli/judged_file.h"

#include <string>

namespace sentry_prof::cli {

// One object, on one line with its newline. A book that was not asked has "valid": null.
std::string validation_json(const JudgedFile& file, const ValidateOptions& options);

}  // namespace sentry_prof::cli
