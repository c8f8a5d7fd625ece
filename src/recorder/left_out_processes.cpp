#include "recorder/left_out_processes.h"

#include "os/process.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sentry_prof::recorder {
namespace {

// Browsers have some 30 processes.
constexpr size_t kMaxPidsShown = 40;
// Each takes reading some files of /proc.
constexpr size_t kMaxToldOf = 1000;

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

std::string note_of_escaped(const target::ProcessTable& processes, const std::vector<int>& pids) {
  if (processes.forgotten_count() > 0) return "";
  const std::vector<uint32_t> in_sight = processes.processes_without_end();
  std::vector<int> escaped = pids;
  std::erase_if(escaped, [&](int pid) {
    return std::ranges::binary_search(in_sight, static_cast<uint32_t>(pid));
  });
  if (escaped.empty()) return "";
  return fmt::format(
      "{} went out of the recorder's sight: the kernel takes its events from a program that "
      "becomes setuid, or that its user may not read, when it is executed. What records it: {}",
      count_of_processes(escaped.size()), command_for(escaped));
}

std::string note_of_children(const std::vector<int>& pids) {
  // The given ones, then what they started, and what those did.
  std::vector<int> tree = pids;
  const auto is_left_out = [&](int child) {
    return std::ranges::find(tree, child) == tree.end() && !os::has_ended(child) &&
           !os::is_us_or_above_us(child);
  };
  const std::vector<os::ChildProcess> all = os::list_child_processes();
  for (size_t i = 0; i < tree.size() && tree.size() - pids.size() < kMaxToldOf; ++i) {
    auto child = std::ranges::lower_bound(all, tree[i], {}, &os::ChildProcess::parent);
    for (; child != all.end() && child->parent == tree[i]; ++child) {
      if (is_left_out(child->pid)) tree.push_back(child->pid);
    }
  }
  const size_t left_out = tree.size() - pids.size();
  if (left_out == 0) return "";
  return fmt::format("{}{} that the target had started before {} not recorded: {}",
                     left_out < kMaxToldOf ? "" : "at least ", count_of_processes(left_out),
                     left_out == 1 ? "is" : "are", command_for(tree));
}

}  // namespace sentry_prof::recorder
