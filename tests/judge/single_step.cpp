// single_step [--max-instructions N] [--skip N] [--every N] [--min-agreement PERCENT] -- COMMAND
//
// Runs the command instruction by instruction and judges a walk at each against the calls and
// returns that were seen. The table's last line is one of JSON. Exit status: 0, or 1 if less than
// the given part of the walks agreed, or 77 where ptrace is not permitted.
#include "judge.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>

#include <fmt/format.h>

namespace sentry_prof::judge {
namespace {

constexpr size_t kClassesShown = 20;

struct Options {
  Limits limits;
  double min_agreement_percent = 0;
  std::vector<std::string> command;
};

std::optional<Options> parse(int count, char** words) {
  Options options;
  int i = 1;
  for (; i + 1 < count && std::strcmp(words[i], "--") != 0; i += 2) {
    const std::string name = words[i];
    const char* value = words[i + 1];
    if (name == "--max-instructions") {
      options.limits.max_judged = std::strtoull(value, nullptr, 10);
    } else if (name == "--skip") {
      options.limits.skipped = std::strtoull(value, nullptr, 10);
    } else if (name == "--every") {
      options.limits.every = std::max<uint64_t>(1, std::strtoull(value, nullptr, 10));
    } else if (name == "--min-agreement") {
      options.min_agreement_percent = std::strtod(value, nullptr);
    } else {
      return std::nullopt;
    }
  }
  if (i + 1 >= count) return std::nullopt;
  options.command.assign(words + i + 1, words + count);
  return options;
}

// Walks that end where the copied stack does are right, but not complete. Those ahead of a jump are
// what libc says of its own code.
double right_percent(const Verdicts& verdicts) {
  if (verdicts.judged() == 0) return 0;
  return 100.0 *
         static_cast<double>(verdicts.agreeing() + verdicts.on_other_stack() +
                             verdicts.ahead_of_jump()) /
         static_cast<double>(verdicts.judged());
}

void report(const Judge& judge, double seconds) {
  const Verdicts& verdicts = judge.verdicts();
  for (const std::string& line : verdicts.classes(judge.space(), kClassesShown)) {
    fmt::print("{}\n", line);
  }
  fmt::print(
      "{{\"judged\": {}, \"agreeing\": {}, \"on_another_stack\": {}, \"ahead_of_a_jump\": {}, "
      "\"disagreeing\": {}, "
      "\"steps\": {}, \"odd_returns\": {}, \"stack_changes\": {}, \"wait_status\": {}, "
      "\"seconds\": {:.3f}}}\n",
      verdicts.judged(), verdicts.agreeing(), verdicts.on_other_stack(), verdicts.ahead_of_jump(),
      verdicts.disagreeing(), judge.steps(), judge.shadow().odd_returns(),
      judge.shadow().stack_changes(), judge.wait_status(), seconds);
}

int run(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  Judge judge(options.command, options.limits);
  judge.run();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  report(judge, taken.count());
  return right_percent(judge.verdicts()) >= options.min_agreement_percent ? 0 : 1;
}

}  // namespace
}  // namespace sentry_prof::judge

int main(int count, char** words) {
  const auto options = sentry_prof::judge::parse(count, words);
  if (!options) {
    std::fputs(
        "usage: single_step [--max-instructions N] [--skip N] [--every N] [--min-agreement PERCENT]"
        " -- COMMAND...\n",
        stderr);
    return 2;
  }
  try {
    return sentry_prof::judge::run(*options);
  } catch (const sentry_prof::judge::NotPermitted& error) {
    fmt::print("skipped: {}\n", error.what());
    return 77;
  } catch (const std::exception& error) {
    fmt::print(stderr, "single_step: {}\n", error.what());
    return 3;
  }
}
