#include "cli/upload_options.h"

#include "cli/choice_option.h"
#include "cli/config_file.h"
#include "cli/environment.h"
#include "cli/validators.h"

#include <algorithm>

#include <CLI/CLI.hpp>

namespace sentry_prof::cli {

void add_sending_options(CLI::App& app, SendingOptions& options) {
  app.add_option("--dsn", options.dsn,
                 "The project's DSN (default: --dsn-file, SENTRY_DSN, .sentryclirc)")
      ->check(not_empty())
      ->type_name("DSN");
  app.add_option("--dsn-file", options.dsn_file, "A file or a pipe that holds the DSN")
      ->check(not_empty())
      ->type_name("FILE");
  app.add_option("--spool", options.spool,
                 "Keep on disk what could not be sent yet, and send what is kept there")
      ->check(not_empty())
      ->type_name("DIR");
  app.add_option("--max-retries", options.max_retries,
                 "Tries after the first one, with growing waits between (default 5)")
      ->transform(in_range(0, 1000))
      ->type_name("N");
  app.add_flag("--keep-image-type", options.keep_image_type,
               "Send the image type 'elf' as it is, although the server refuses it");
  add_choice<upload::BodyEncoding>(app, "--compress", options.compression,
                                   {{"gzip", upload::BodyEncoding::Gzip},
                                    {"zstd", upload::BodyEncoding::Zstd},
                                    {"none", upload::BodyEncoding::Identity}},
                                   "Packing of what is sent (default gzip)");
  app.add_option("--ca-file", options.ca_file,
                 "Certificate authorities to trust, PEM (default: curl's conventions)")
      ->check(not_empty())
      ->type_name("FILE")
      ->default_function([] { return "(the system's)"; });
}

void add_upload_options(CLI::App& upload, UploadCommandOptions& options) {
  upload
      .add_option("FILE", options.files,
                  "V1 profiles, V2 chunks and envelopes, also as .gz, .zst or .xz; '-' is "
                  "standard input")
      ->type_name(" ");
  add_sending_options(upload, options.sending);
  for (const char* name : {"--spool", "--max-retries", "--compress", "--ca-file"}) {
    options.options_to_send.push_back(upload.get_option(name));
  }
  upload.add_flag("--dry-run", options.is_dry_run,
                  "Write the envelope to -o instead of sending it");
  upload.add_option("-o,--output", options.output, "Of --dry-run: a file, or '-'")
      ->type_name("ENVELOPE");
  upload.add_flag("--no-validate", options.no_validate, "Send also what Sentry would refuse");
  upload
      .add_option("--transaction-file", options.transaction_file,
                  "V1: the transaction (JSON) to send with the profile")
      ->check(not_empty())
      ->type_name("FILE");
  upload
      .add_option("--link-transaction", options.link_transaction,
                  "V2: a transaction (JSON) to link to the chunk and to send behind it")
      ->check(not_empty())
      ->type_name("FILE");
  upload.add_flag("-q,--quiet", options.is_quiet, "Say nothing but errors");
  upload.add_flag("-v,--verbose", options.sending.is_verbose,
                  "Tell of every request; so does SENTRY_DEBUG=1");
}

namespace {

auto count_of_standard_input(const UploadCommandOptions& options) {
  return std::ranges::count(options.files, "-") + (options.sending.dsn_file == "-") +
         (options.transaction_file == "-") + (options.link_transaction == "-");
}

}  // namespace

Result<void> complete(UploadCommandOptions& options) {
  const auto wrong = [](const char* message) { return fail(ErrorCode::InvalidArgument, message); };
  if (options.files.empty() && (options.sending.spool.empty() || options.is_dry_run)) {
    return wrong("nothing to upload: give one FILE or more, or --spool DIR");
  }
  if (options.is_dry_run != !options.output.empty()) {
    return wrong("--dry-run needs -o ENVELOPE, and -o is for --dry-run");
  }
  if (!options.transaction_file.empty() && !options.link_transaction.empty()) {
    return wrong("--transaction-file is for V1 and --link-transaction for V2: give one of them");
  }
  if (options.files.empty() && !options.transaction_file.empty()) {
    return wrong("--transaction-file is for the FILE of a V1 profile, and there is none");
  }
  if (options.files.empty() && !options.link_transaction.empty()) {
    return wrong("--link-transaction is for the FILE of a V2 chunk, and there is none");
  }
  if (options.is_dry_run && !options.link_transaction.empty()) {
    return wrong("--dry-run writes one envelope: leave --link-transaction out");
  }
  if (count_of_standard_input(options) > 1) {
    return wrong("'-' is standard input, which can be read for one thing only");
  }
  const bool is_for_one = options.is_dry_run || !options.transaction_file.empty();
  if (is_for_one && options.files.size() > 1) {
    return wrong("--dry-run and --transaction-file are for one FILE at a time");
  }
  const auto verbose = is_verbose(options.sending.is_verbose, options.is_quiet);
  if (!verbose) return tl::unexpected(verbose.error());
  options.sending.is_verbose = *verbose;
  return {};
}

Result<void> check_dry_run_options(const UploadCommandOptions& options,
                                   const std::vector<std::string>& of_config) {
  if (!options.is_dry_run) return {};
  const std::string name = first_on_command_line(options.options_to_send, of_config);
  if (name.empty()) return {};
  return fail(ErrorCode::InvalidArgument,
              name + " is for sending: --dry-run writes the plain envelope. Leave it out");
}

}  // namespace sentry_prof::cli
