// The arguments of `sentry-prof record`, checked.
#pragma once

#include "cli/profile_options.h"
#include "cli/upload_options.h"
#include "sampling/sampler.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sentry_prof::cli {

inline constexpr uint32_t kDefaultFrequency_hz = 101;

struct RecordOptions : ProfileOptions {
  std::vector<int> pids;
  std::vector<std::string> command;      // everything behind the first "--"
  std::optional<uint32_t> frequency_hz;  // empty: kDefaultFrequency_hz, or as much as may be
  std::optional<double> duration_s;
  sampling::ClockEvent event = sampling::ClockEvent::CpuClock;
  uint32_t stack_bytes = 0;  // 0: automatic
  bool no_children = false;
  bool no_bpf = false;
  std::string raw_log;  // hidden: a file; empty: none is kept
  std::string replay;   // hidden: a raw log to take the place of a target
  bool upload = false;
  SendingOptions sending;                           // with `upload`
  std::vector<const CLI::Option*> sending_options;  // of the parser, that fill in `sending`
};

void add_record_options(CLI::App& record, RecordOptions& options);

// What the parser alone cannot see: options that exclude each other, and complete() of the
// profile's.
Result<void> complete(RecordOptions& options);

// Wrong usage if the command line has options that only `--upload` uses, without it. One file of
// --config may serve recordings that upload and others. `of_config`: arguments_of_config().
Result<void> check_sending_options(const RecordOptions& options,
                                   const std::vector<std::string>& of_config);

}  // namespace sentry_prof::cli
