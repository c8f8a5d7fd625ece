// The arguments of `sentry-prof convert`, checked.
#pragma once

#include "cli/record_options.h"
#include "sentry_prof/result.h"

#include <string>

namespace CLI {
class App;
}

namespace sentry_prof::cli {

// Only one so far: the option is there so that scripts can insist on it.
enum class ConvertFrom { Auto, Perf };

struct ConvertOptions {
  std::string input;
  ConvertFrom from = ConvertFrom::Auto;
  // What is written, and how it is called: the options that `record` has, too.
  RecordOptions profile;
};

void add_convert_options(CLI::App& convert, ConvertOptions& options);

// What the parser alone cannot see, as complete() of `record`.
Result<void> complete(ConvertOptions& options);

}  // namespace sentry_prof::cli
