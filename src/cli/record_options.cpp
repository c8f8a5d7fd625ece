#include "cli/record_options.h"

#include "cli/choice_option.h"
#include "cli/config_file.h"
#include "cli/validators.h"
#include "sampling/sampler.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

constexpr uint32_t kMinStack_bytes = 1'024;

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

void add_target_options(CLI::App& record, RecordOptions& options) {
  record
      .add_option("-p,--pid", options.pids,
                  "Process to attach to: its threads, and what it starts from now on\n"
                  "(not the children it has already). Several: -p 12,34")
      ->delimiter(',')
      ->transform(is_pid())
      ->type_name("PID[,PID]");
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
                  fmt::format("Samples per second of CPU time, 1 to {} (default {})",
                              sampling::kMaxFrequency_hz, kDefaultFrequency_hz))
      ->transform(in_range(1u, sampling::kMaxFrequency_hz))
      ->type_name("HZ")
      ->default_function([] { return std::to_string(kDefaultFrequency_hz); });
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
  record.add_flag("--no-bpf", options.no_bpf,
                  "Do not load the BPF program that copies what deep stacks have beyond 64 KiB\n"
                  "(it takes root, or CAP_BPF and CAP_PERFMON)");
}

void add_live_upload_options(CLI::App& record, RecordOptions& options) {
  record.add_flag("--upload", options.upload,
                  "Send each chunk to Sentry; files only if -o is given, too");
  const size_t others = record.get_options().size();
  add_sending_options(record, options.sending);
  const auto all = record.get_options();
  options.sending_options.assign(all.begin() + static_cast<ptrdiff_t>(others), all.end());
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
  if (auto ok = complete(static_cast<ProfileOptions&>(options)); !ok) return ok;
  options.sending.is_verbose = options.is_verbose;
  return {};
}

Result<void> check_sending_options(const RecordOptions& options,
                                   const std::vector<std::string>& of_config) {
  if (options.upload) return {};
  const std::string name = first_on_command_line(options.sending_options, of_config);
  if (!name.empty()) return fail(ErrorCode::InvalidArgument, name + " is for --upload");
  return {};
}

}  // namespace sentry_prof::cli
