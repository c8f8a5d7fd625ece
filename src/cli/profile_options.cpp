#include "cli/profile_options.h"

#include "base/time_units.h"
#include "base/utf8.h"
#include "cli/environment.h"
#include "cli/message.h"
#include "cli/validators.h"
#include "sentry/attribute_rules.h"
#include "sentry_prof/limits.h"

#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

constexpr const char* kDefaultEnvironment = "production";  // Sentry's own

// V1 counts from the begin of the chunk, and its last sample may come late.
constexpr uint64_t kV1Margin_ns = kNsPerSecond;

// Of a value that is refused.
constexpr size_t kShown_bytes = 80;

constexpr double seconds(uint64_t time_ns) { return static_cast<double>(time_ns) / 1e9; }

// `value` from its variable if it was not given; what Sentry would refuse is told with its source.
Result<void> complete(std::string& value, const char* option, const char* variable,
                      Result<void> (*check)(std::string_view)) {
  const char* source = value.empty() ? variable : option;
  if (value.empty()) value = environment_variable(variable);
  const auto ok = check(value);
  if (ok) return {};
  return fail(ErrorCode::InvalidArgument,
              fmt::format("{} '{}' {}", source, shortened_utf8(printable_utf8(value), kShown_bytes),
                          ok.error().message));
}

// What a platform that Sentry takes costs there; empty for rust and native. Source: Sentry's list
// of platforms that it symbolicates (SHOULD_SYMBOLICATE), and its 36-bit addresses of cocoa.
std::string warning_of_platform(const std::string& platform) {
  if (platform == "rust" || platform == "native") return {};
  if (platform == "cocoa") {
    return "--platform cocoa: Sentry cuts the addresses of this platform to 36 bits, so that it "
           "finds none of the functions";
  }
  return fmt::format(
      "--platform {}: Sentry symbolicates native code of the platform rust only; functions keep "
      "the names that are found here",
      platform);
}

// That --transaction has no effect; empty if it has, or was not given.
std::string warning_of_transaction(const ProfileOptions& options, bool is_uploaded) {
  const bool has_effect = options.format == SentryFormat::V1 || is_uploaded;
  if (has_effect || options.transaction.empty()) return {};
  return "--transaction: files in V2 name no transaction. Those in V1 do, and record --upload "
         "sends one";
}

}  // namespace

double longest_chunk_s(SentryFormat format) {
  return seconds(format == SentryFormat::V1 ? limits::kV1MaxDuration_ns - kV1Margin_ns
                                            : limits::kV2MaxDuration_ns);
}

double default_chunk_s(SentryFormat format) {
  return format == SentryFormat::V1 ? longest_chunk_s(format) : 60;
}

uint64_t chunk_ns(const ProfileOptions& options) {
  return static_cast<uint64_t>(options.chunk_s.value_or(default_chunk_s(options.format)) * 1e9);
}

void add_profile_options(CLI::App& command, ProfileOptions& options, const char* transaction_help) {
  command
      .add_option("--chunk-seconds", options.chunk_s,
                  fmt::format("Length of one file (default {}, at most {}; v1: {})",
                              default_chunk_s(SentryFormat::V2), longest_chunk_s(SentryFormat::V2),
                              longest_chunk_s(SentryFormat::V1)))
      ->check(in_range(0.1, longest_chunk_s(SentryFormat::V2)))
      ->type_name("SECONDS")
      ->default_function([&options] { return fmt::format("{}", default_chunk_s(options.format)); });
  command
      .add_option("--release", options.release,
                  "Release (default: SENTRY_RELEASE, else NAME@BUILDID of the executable)")
      ->default_function([] { return "(NAME@BUILDID)"; });
  command
      .add_option("--environment", options.environment,
                  "Environment (default: SENTRY_ENVIRONMENT, else production)")
      ->default_function([] { return kDefaultEnvironment; });
  command.add_option("--transaction", options.transaction, transaction_help)
      ->default_function([&options] { return options.format == SentryFormat::V1 ? "(NAME)" : ""; });
  command.add_option("--platform", options.platform,
                     "Platform (default rust: what Sentry symbolicates ELF frames for)");
  command
      .add_option("--summary", options.summary,
                  "Write the end-of-run figures as JSON ('-': standard output)")
      ->check(not_empty())
      ->type_name("FILE");
  command.add_flag("-q,--quiet", options.is_quiet, "Say nothing but errors");
  command.add_flag("-v,--verbose", options.is_verbose, "Say more");
}

Result<void> complete(ProfileOptions& options) {
  if (options.chunk_s && *options.chunk_s > longest_chunk_s(options.format)) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("--chunk-seconds {}: Sentry refuses V1 profiles longer than {} s; at "
                            "most {} for those",
                            *options.chunk_s, seconds(limits::kV1MaxDuration_ns),
                            longest_chunk_s(options.format)));
  }
  if (options.summary == "-" && options.output == "-") {
    return fail(ErrorCode::InvalidArgument,
                "--output and --summary cannot both go to standard output");
  }
  if (options.platform.empty()) {
    return fail(ErrorCode::InvalidArgument, "--platform: must not be empty");
  }
  if (auto ok = complete(options.release, "--release", "SENTRY_RELEASE", check_release); !ok)
    return ok;
  if (auto ok =
          complete(options.environment, "--environment", "SENTRY_ENVIRONMENT", check_environment);
      !ok) {
    return ok;
  }
  if (options.environment.empty()) options.environment = kDefaultEnvironment;
  const auto verbose = is_verbose(options.is_verbose, options.is_quiet);
  if (!verbose) return tl::unexpected(verbose.error());
  options.is_verbose = *verbose;
  return {};
}

void warn_of(const ProfileOptions& options, bool is_uploaded) {
  if (options.is_quiet) return;
  for (const std::string& warning :
       {warning_of_platform(options.platform), warning_of_transaction(options, is_uploaded)}) {
    if (!warning.empty()) complain("warning: " + warning);
  }
}

}  // namespace sentry_prof::cli
