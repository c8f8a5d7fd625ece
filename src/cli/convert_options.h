// The arguments of `sentry-prof convert`, checked.
#pragma once

#include "cli/profile_options.h"
#include "sentry_prof/result.h"

#include <string>

namespace CLI {
class App;
}

namespace sentry_prof::cli {

// Only one so far: the option is there so that scripts can insist on it.
enum class ConvertFrom { Auto, Perf };

struct ConvertOptions : ProfileOptions {
  std::string input;
  ConvertFrom from = ConvertFrom::Auto;
};

void add_convert_options(CLI::App& convert, ConvertOptions& options);

// What the parser alone cannot see, and complete() of the profile's options.
Result<void> complete(ConvertOptions& options);

}  // namespace sentry_prof::cli
