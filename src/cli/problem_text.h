// `validate --format text`: like a compiler's messages, for people.
#pragma once

#include "cli/judged_file.h"

#include <string>

namespace sentry_prof::cli {

// All about one file that was judged: each problem with its place, the verdict, and of a valid file
// what it holds. Bounded: 100 problems a rule, cut messages; nothing unprintable of the file or its
// name. `is_coloured`: with a terminal's colours.
std::string problem_text(const JudgedFile& file, const ValidateOptions& options, bool is_coloured);

}  // namespace sentry_prof::cli
