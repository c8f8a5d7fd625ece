// The arguments of `sentry-prof upload`, and those that `record --upload` shares with it.
#pragma once

#include "sentry_prof/result.h"
#include "upload/body_encoding.h"

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sentry_prof::cli {

// Where to and how.
struct SendingOptions {
  std::string dsn;       // secret; empty: from elsewhere, see dsn_source.h
  std::string dsn_file;  // secret inside
  std::string dsn_from;  // before these options' names in messages: "--config FILE: ", or nothing
  std::string spool;     // a directory; empty: none
  uint32_t max_retries = 5;
  bool keep_image_type = false;
  upload::BodyEncoding compression = upload::BodyEncoding::Gzip;
  std::string ca_file;
  bool is_verbose = false;  // tell of every request
};

struct UploadCommandOptions {
  SendingOptions sending;
  std::vector<std::string> files;  // "-": standard input
  bool is_dry_run = false;
  std::string output;  // of the dry run
  bool no_validate = false;
  std::string transaction_file;  // V1
  std::string link_transaction;  // V2
  bool is_quiet = false;
  std::vector<const CLI::Option*> options_to_send;  // of the parser, that --dry-run has no use for
};

void add_sending_options(CLI::App& app, SendingOptions& options);
void add_upload_options(CLI::App& upload, UploadCommandOptions& options);

// What the parser alone cannot see: options that exclude each other. Also fills in SENTRY_DEBUG.
Result<void> complete(UploadCommandOptions& options);

// Wrong usage if the command line has options that --dry-run would ignore, and it.
Result<void> check_dry_run_options(const UploadCommandOptions& options,
                                   const std::vector<std::string>& of_config);

}  // namespace sentry_prof::cli
