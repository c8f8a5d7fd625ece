// What a profile is called, how it is cut and where it goes: the arguments that `record` and
// `convert` have in common.
#pragma once

#include "sentry_prof/result.h"
#include "sentry_prof/sentry.h"

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace sentry_prof::cli {

struct ProfileOptions {
  std::string output;  // empty: the default name; with `record --upload` no file
  SentryFormat format = SentryFormat::V2;
  std::optional<double> chunk_s;  // unset: the format's default
  std::string release;            // empty: NAME@BUILDID of the main executable
  std::string environment;
  std::string transaction;
  std::string platform = "rust";
  std::string summary;  // a file; empty: none
  bool is_quiet = false;
  bool is_verbose = false;
};

// Longest chunk of a format. V1: Sentry refuses profiles longer than 30 s; the last sample of a
// chunk may be up to a period late. V2: 60 s + 10 % is what the server still takes.
double longest_chunk_s(SentryFormat format);
double default_chunk_s(SentryFormat format);
// As asked for, or the format's default.
uint64_t chunk_ns(const ProfileOptions& options);

// All but the output and its format, which each command names in its own way.
void add_profile_options(CLI::App& command, ProfileOptions& options, const char* transaction_help);

// What the parser alone cannot see; fills in SENTRY_RELEASE, SENTRY_ENVIRONMENT and SENTRY_DEBUG.
// InvalidArgument.
Result<void> complete(ProfileOptions& options);

// Warns of options without effect, or with one that is hardly wanted. `is_uploaded`: with an upload
// a transaction is sent, too.
void warn_of(const ProfileOptions& options, bool is_uploaded);

}  // namespace sentry_prof::cli
