// The few facts that are taken from /proc/PID/stat and /proc/PID/status. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sentry_prof::os {

struct ProcStat {
  char state = '?';  // 'R', 'S', ..., 'Z' zombie, 'X' dead
  uint32_t parent_pid = 0;
  bool is_kernel_thread = false;  // PF_KTHREAD
  uint64_t start_ticks = 0;       // since the system's boot, sysconf(_SC_CLK_TCK) a second
};

// "PID (COMM) STATE PPID ...": the name may hold blanks and parentheses. Source: proc_pid_stat(5).
std::optional<ProcStat> parse_stat(std::string_view text);

struct ProcStatus {
  uint32_t thread_group = 0;            // "Tgid:", the pid that the thread belongs to
  uint32_t innermost_pid = 0;           // "NSpid:", the pid in the process's own pid namespace
  std::array<uint32_t, 4> user_ids{};   // "Uid:", real, effective, saved, file system
  std::array<uint32_t, 4> group_ids{};  // "Gid:"
  uint64_t effective_capabilities = 0;  // "CapEff:"
};

// Lines that are missing leave zeros; none without "Tgid:" and "Uid:". Source: proc_pid_status(5).
std::optional<ProcStatus> parse_status(std::string_view text);

}  // namespace sentry_prof::os
