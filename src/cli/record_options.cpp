#include "cli/record_options.h"

#include "base/time_units.h"
#include "base/utf8.h"
#include "cli/choice_option.h"
#include "cli/environment.h"
#include "sampling/sampler.h"
#include "sentry/attribute_rules.h"
#include "sentry_prof/limits.h"

#include <charconv>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

constexpr const char* kDefaultEnvironment = "production";  // Sentry's own
constexpr uint32_t kMinStack_bytes = 1'024;

// V1 counts from the begin of the chunk, and its last sample may come late.
constexpr uint64_t kV1Margin_ns = kNsPerSecond;

// Of a value that is refused.
constexpr size_t kShown_bytes = 80;

constexpr double seconds(uint64_t time_ns) { return static_cast<double>(time_ns) / 1e9; }

// Decimal numbers only: CLI11 would take 010 for 8 and attach to another process.
template <typename T>
bool parse_number(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

// CLI11 would print the bounds and the values of enumerations into the help; our help says them in
// words. The text of an integer becomes what CLI11 reads as the same number.
template <typename T>
CLI::Validator in_range(T low, T high) {
  return CLI::Validator(
      [low, high](std::string& text) {
        T value{};
        if (parse_number(text, value) && value >= low && value <= high) {
          if constexpr (std::is_integral_v<T>) text = std::to_string(value);
          return std::string();
        }
        constexpr std::string_view kKind = std::is_integral_v<T> ? "a whole number" : "a number";
        return fmt::format("'{}' is not {} from {} to {}", text, kKind, low, high);
      },
      "");
}

CLI::Validator is_pid() {
  return CLI::Validator(
      [](std::string& text) {
        int pid = 0;
        if (!parse_number(text, pid) || pid < 1) {
          return fmt::format("'{}' is no process id (several: -p 12,34)", text);
        }
        text = std::to_string(pid);
        return std::string();
      },
      "");
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](const std::string& text) { return text.empty() ? "must not be empty" : std::string(); },
      "");
}

// "auto" or a size in bytes that the kernel accepts (a multiple of 8).
std::string parse_stack_bytes(const std::string& text, uint32_t& stack_bytes) {
  if (text == "auto") {
    stack_bytes = 0;
    return "";
  }
  uint32_t value = 0;
  if (!parse_number(text, value) || value < kMinStack_bytes || value > sampling::kMaxStack_bytes ||
      value % 8 != 0) {
    return fmt::format("'auto' or a multiple of 8 from {} to {}", kMinStack_bytes,
                       sampling::kMaxStack_bytes);
  }
  stack_bytes = value;
  return "";
}

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

}  // namespace

double longest_chunk_s(SentryFormat format) {
  return seconds(format == SentryFormat::V1 ? limits::kV1MaxDuration_ns - kV1Margin_ns
                                            : limits::kV2MaxDuration_ns);
}

double default_chunk_s(SentryFormat format) {
  return format == SentryFormat::V1 ? longest_chunk_s(format) : 60;
}

void add_profile_options(CLI::App& command, RecordOptions& options, const char* transaction_help) {
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

std::string warning_of_transaction(const RecordOptions& options) {
  const bool has_effect = options.format == SentryFormat::V1 || options.upload;
  if (has_effect || options.transaction.empty()) return {};
  return "--transaction: files in V2 name no transaction. Those in V1 do, and record --upload "
         "sends one";
}

Result<void> complete_profile_options(RecordOptions& options) {
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

namespace {

void add_target_options(CLI::App& record, RecordOptions& options) {
  record
      .add_option("-p,--pid", options.pids,
                  "Process to attach to: its threads, and what it starts from now on\n"
                  "(not the children it has already). Several: -p 12,34")
      ->delimiter(',')
      ->transform(is_pid())
      ->type_name("PID[,PID]...");
}

void add_output_options(CLI::App& record, RecordOptions& options) {
  record
      .add_option("-o,--output", options.output,
                  "A file, a directory (made if it ends in '/'), or '-' for standard\n"
                  "output (default NAME-PID.v2.json here). Further chunks: FILE.2.json ...")
      ->check(not_empty())
      ->type_name("PATH")
      ->default_function([&options] {
        if (options.upload) return "";
        return options.format == SentryFormat::V1 ? "(NAME-PID.v1.json)" : "(NAME-PID.v2.json)";
      });
  add_choice<SentryFormat>(record, "--format", options.format,
                           {{"v1", SentryFormat::V1}, {"v2", SentryFormat::V2}},
                           "Sentry's sample format (default v2)");
}

void add_stack_bytes_option(CLI::App& record, RecordOptions& options) {
  record
      .add_option_function<std::string>(
          "--stack-bytes",
          [&options](const std::string& text) {
            const std::string problem = parse_stack_bytes(text, options.stack_bytes);
            if (!problem.empty()) throw CLI::ValidationError("--stack-bytes", problem);
          },
          fmt::format("How much of the stack each sample copies: a multiple of 8 from {}\n"
                      "to {} (default auto)",
                      kMinStack_bytes, sampling::kMaxStack_bytes))
      ->type_name("auto|N")
      ->default_function([] { return "auto"; });
}

void add_sampling_options(CLI::App& record, RecordOptions& options) {
  record
      .add_option("-F,--frequency", options.frequency_hz,
                  "Samples per second of CPU time, 1 to 10000 (default 101)")
      ->transform(in_range(1u, 10000u))
      ->type_name("HZ");
  record
      .add_option("-d,--duration", options.duration_s,
                  "Stop after this long (default: at ^C, SIGTERM or the target's end)")
      ->check(in_range(0.001, 1e9))
      ->type_name("SECONDS")
      ->default_function([] { return "(no end)"; });
  add_choice<sampling::ClockEvent>(
      record, "--event", options.event,
      {{"cpu-clock", sampling::ClockEvent::CpuClock}, {"cycles", sampling::ClockEvent::Cycles}},
      "What drives the sampling (default cpu-clock; cycles needs hardware counters)");
  add_stack_bytes_option(record, options);
  record.add_flag("--no-children", options.no_children, "Do not follow new processes");
}

void add_live_upload_options(CLI::App& record, RecordOptions& options) {
  record.add_flag("--upload", options.upload,
                  "Send each chunk to Sentry; files only if -o is given, too");
  add_sending_options(record, options.sending);
}

// For debugging sentry-prof itself: docs/raw-log.md. An empty group keeps them out of the help.
void add_raw_log_options(CLI::App& record, RecordOptions& options) {
  record.add_option("--raw-log", options.raw_log)->check(not_empty())->group("");
  record.add_option("--replay", options.replay)->check(not_empty())->group("");
}

}  // namespace

// In the order of the help.
void add_record_options(CLI::App& record, RecordOptions& options) {
  add_target_options(record, options);
  add_output_options(record, options);
  add_sampling_options(record, options);
  add_profile_options(record, options,
                      "Name of the V1 transaction (default: the executable's name);\n"
                      "with v2 and --upload: also send one of this name, linked to the chunks");
  add_live_upload_options(record, options);
  add_raw_log_options(record, options);
}

Result<void> complete(RecordOptions& options) {
  const bool has_target = !options.pids.empty() || !options.command.empty();
  if (!options.replay.empty() && (has_target || !options.raw_log.empty())) {
    return fail(ErrorCode::InvalidArgument, "--replay takes the place of a target");
  }
  if (options.replay.empty() && options.pids.empty() == options.command.empty()) {
    return fail(ErrorCode::InvalidArgument,
                options.pids.empty() ? "nothing to record: give -p PID, or a command after '--'"
                                     : "give either -p PID or a command after '--', not both");
  }
  if (options.upload && !options.replay.empty()) {
    return fail(ErrorCode::InvalidArgument, "--replay writes files; upload them");
  }
  if (!options.upload && options.sending != SendingOptions{}) {
    return fail(ErrorCode::InvalidArgument,
                "--dsn, --dsn-file, --spool, --max-retries, --keep-image-type, --compress and "
                "--ca-file are for --upload");
  }
  if (auto ok = complete_profile_options(options); !ok) return ok;
  options.sending.is_verbose = options.is_verbose;
  return {};
}

}  // namespace sentry_prof::cli
