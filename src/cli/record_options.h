// The arguments of `sentry-prof record`, checked.
#pragma once

#include "cli/upload_options.h"
#include "sampling/sampler.h"
#include "sentry_prof/result.h"
#include "sentry_prof/sentry.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sentry_prof::cli {

struct RecordOptions {
  std::vector<int> pids;
  std::vector<std::string> command;  // everything behind the first "--"
  std::string output;                // empty: the default name; with `upload` no file
  SentryFormat format = SentryFormat::V2;
  uint32_t frequency_hz = 101;
  std::optional<double> duration_s;
  std::optional<double> chunk_s;  // unset: the format's default
  sampling::ClockEvent event = sampling::ClockEvent::CpuClock;
  uint32_t stack_bytes = 0;  // 0: automatic
  bool no_children = false;
  std::string release;  // empty: NAME@BUILDID of the main executable
  std::string environment;
  std::string transaction;
  std::string platform = "rust";
  std::string summary;  // a file; empty: none
  std::string raw_log;  // hidden: a file; empty: none is kept
  std::string replay;   // hidden: a raw log to take the place of a target
  bool upload = false;
  SendingOptions sending;  // with `upload`
  bool is_quiet = false;
  bool is_verbose = false;
};

// Longest chunk of a format. V1: Sentry refuses profiles longer than 30 s; the last sample of a
// chunk may be up to a period late. V2: 60 s + 10 % is what the server still takes.
double longest_chunk_s(SentryFormat format);
double default_chunk_s(SentryFormat format);

// The options that say what a profile is called and how it is cut, and what is said of it: those
// that `record` and `convert` have in common.
void add_profile_options(CLI::App& command, RecordOptions& options, const char* transaction_help);
// As complete(), of these options and the format.
Result<void> complete_profile_options(RecordOptions& options);

// What a platform that Sentry takes costs there; empty for rust and native. Source: Sentry's list
// of platforms that it symbolicates (SHOULD_SYMBOLICATE), and its 36-bit addresses of cocoa.
std::string warning_of_platform(const std::string& platform);
// That --transaction has no effect; empty if it has, or was not given.
std::string warning_of_transaction(const RecordOptions& options);

void add_record_options(CLI::App& record, RecordOptions& options);

// What the parser alone cannot see: options that exclude each other. Also fills in SENTRY_RELEASE,
// SENTRY_ENVIRONMENT and SENTRY_DEBUG.
Result<void> complete(RecordOptions& options);

}  // namespace sentry_prof::cli
