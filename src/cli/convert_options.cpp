#include "cli/convert_options.h"

#include "cli/choice_option.h"

#include <CLI/CLI.hpp>

namespace sentry_prof::cli {

void add_convert_options(CLI::App& convert, ConvertOptions& options) {
  convert.add_option("IN", options.input, "A perf.data file of 'perf record --call-graph dwarf'")
      ->type_name(" ");
  convert
      .add_option("-o,--output", options.output,
                  "A file, a directory (made if it ends in '/'), or '-' for standard\n"
                  "output. Further chunks: OUT.2.json ...")
      ->type_name("OUT");
  add_choice<ConvertFrom>(convert, "--from", options.from,
                          {{"auto", ConvertFrom::Auto}, {"perf", ConvertFrom::Perf}},
                          "What IN is (default auto: by its first bytes)");
  add_choice<SentryFormat>(convert, "--to", options.format,
                           {{"sentry-v1", SentryFormat::V1}, {"sentry-v2", SentryFormat::V2}},
                           "Sentry's sample format (default sentry-v2)");
  add_profile_options(convert, options,
                      "Name of the V1 transaction (default: the executable's name)");
}

Result<void> complete(ConvertOptions& options) {
  if (options.input.empty()) {
    return fail(ErrorCode::InvalidArgument, "nothing to convert: give a perf.data file");
  }
  if (options.output.empty()) {
    return fail(ErrorCode::InvalidArgument, "say where to write: -o OUT");
  }
  return complete(static_cast<ProfileOptions&>(options));
}

}  // namespace sentry_prof::cli
