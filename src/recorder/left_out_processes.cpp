#include "recorder/left_out_processes.h"

#include "os/process.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sentry_prof::recorder {
namespace {

constexpr size_t kMaxPidsShown = 10;

std::string count_of_processes(size_t count) {
  return count == 1 ? "a process" : fmt::format("{} processes", count);
}

// What would record them.
std::string command_for(const std::vector<int>& pids) {
  const size_t shown = std::min(pids.size(), kMaxPidsShown);
  return fmt::format(
      "sentry-prof record -p {}{}",
      fmt::join(pids.begin(), pids.begin() + static_cast<std::ptrdiff_t>(shown), ","),
      shown < pids.size() ? ",..." : "");
}

}  // namespace

std::string note_of_left(const target::ProcessTable& processes) {
  if (os::is_init()) return "";
  const std::vector<uint32_t> living = processes.living_processes();
  std::vector<int> left(living.begin(), living.end());
  std::erase_if(left, os::has_ended);
  if (left.empty()) return "";
  return fmt::format(
      "the recording ended with what it was pointed at, but {} that this started go{} on: {}",
      count_of_processes(left.size()), left.size() == 1 ? "es" : "", command_for(left));
}

std::string note_of_children(const std::vector<int>& pids) {
  std::vector<int> children;
  const auto is_left_out = [&](int child) {
    return std::ranges::find(pids, child) == pids.end() && !os::has_ended(child) &&
           !os::is_us_or_above_us(child);
  };
  for (const int pid : pids)
    std::ranges::copy_if(os::list_children(pid), std::back_inserter(children), is_left_out);
  if (children.empty()) return "";
  return fmt::format("{} that the target had started before {} not recorded: {}",
                     count_of_processes(children.size()), children.size() == 1 ? "is" : "are",
                     command_for(children));
}

}  // namespace sentry_prof::recorder
