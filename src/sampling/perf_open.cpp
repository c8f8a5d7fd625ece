#include "sampling/perf_open.h"

#include "os/errors.h"
#include "os/file.h"
#include "os/privileges.h"
#include "os/process.h"

#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sentry_prof::sampling {
namespace {

constexpr size_t kProcFileLimit_bytes = 64 * 1024;

std::optional<int> read_number(const std::string& path) {
  const auto text = os::read_small_file(path, kProcFileLimit_bytes);
  int value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// What to do at levels that only patched kernels know. Debian's and Ubuntu's ask for CAP_SYS_ADMIN
// there, where the kernel itself is content with CAP_PERFMON.
std::string_view advice_at_high_level() {
  if (os::has_capability(os::kCapPerfmon))
    return "CAP_PERFMON is not enough at this level: add CAP_SYS_ADMIN";
  return ::geteuid() == 0 ? "Add CAP_SYS_ADMIN to the container" : "Run as root";
}

Error permission_error(int error_number) {
  const auto paranoid = read_number("/proc/sys/kernel/perf_event_paranoid");
  const std::string level = paranoid ? std::to_string(*paranoid) : "not readable";
  // The kernel itself answers EACCES, and at level 2 lets everybody sample processes of his own;
  // patched kernels know levels 3 and 4. EPERM comes from a filter in front of the kernel.
  if (error_number == EACCES && paranoid && *paranoid > 2) {
    return {
        ErrorCode::PermissionDenied,
        fmt::format("perf_event_open: permission denied (kernel.perf_event_paranoid is {}). {}, "
                    "or: sysctl kernel.perf_event_paranoid=2",
                    level, advice_at_high_level())};
  }
  return {
      ErrorCode::PermissionDenied,
      fmt::format("perf_event_open: {}: a seccomp filter or security module refuses it "
                  "(kernel.perf_event_paranoid is {}). In a container, add the capability PERFMON "
                  "and allow perf_event_open in the seccomp profile",
                  os::describe_errno(error_number), level)};
}

Error invalid_error(const EventChoices& choices) {
  const auto max_hz = max_sample_rate_hz();
  if (max_hz && choices.frequency_hz > *max_hz) {
    return {
        ErrorCode::InvalidArgument,
        fmt::format("a frequency of {} Hz is above kernel.perf_event_max_sample_rate, which is {}. "
                    "Choose a lower one, or raise that limit with sysctl",
                    choices.frequency_hz, *max_hz)};
  }
  return {ErrorCode::Unsupported,
          fmt::format("perf_event_open: {}: this kernel refuses the events that sentry-prof needs "
                      "(Linux 5.4 or newer with CONFIG_PERF_EVENTS)",
                      os::describe_errno(EINVAL))};
}

Error probe_error(int error_number, const EventChoices& choices) {
  if (error_number == EACCES || error_number == EPERM) return permission_error(error_number);
  if (error_number == EINVAL) return invalid_error(choices);
  if (error_number == ENOSYS) {
    return {
        ErrorCode::Unsupported,
        "perf_event_open: not there (ENOSYS). The kernel was built without CONFIG_PERF_EVENTS, or "
        "a container's seccomp profile hides it"};
  }
  return {os::error_code_of(error_number),
          fmt::format("perf_event_open: {}", os::describe_errno(error_number))};
}

bool is_permission(int error_number) { return error_number == EACCES || error_number == EPERM; }
bool is_unknown_flag(int error_number) { return error_number == EINVAL || error_number == E2BIG; }
// ENOENT: no such counter; EOPNOTSUPP: no interrupt; ENODEV: no such device (virtual machines).
bool is_missing_counter(int error_number) {
  return error_number == ENOENT || error_number == EOPNOTSUPP || error_number == ENODEV;
}

// What newer kernels can do, in the order in which it is given up where a flag is not known.
using ChoiceMember = bool EventChoices::*;
struct Choice {
  ChoiceMember is_made;
  bool of_sampling_event, of_side_band_event;
};
constexpr Choice kChoices[] = {{&EventChoices::keeps_periods, false, true},
                               {&EventChoices::counts_lost, true, false},
                               {&EventChoices::has_build_ids, false, true},
                               {&EventChoices::inherits_threads_only, true, true},
                               {&EventChoices::has_switches, false, true}};

// What to try next after a refusal. False if all has been given up.
bool give_up_something(EventChoices& choices, int error_number, bool is_sampling) {
  if (is_sampling && is_permission(error_number) && !choices.excludes_kernel) {
    choices.excludes_kernel = true;
    return true;
  }
  if (is_sampling && is_missing_counter(error_number) && choices.event == ClockEvent::Cycles) {
    choices.event = ClockEvent::CpuClock;
    return true;
  }
  if (!is_unknown_flag(error_number)) return false;
  for (const Choice& choice : kChoices) {
    const bool concerns_event = is_sampling ? choice.of_sampling_event : choice.of_side_band_event;
    if (!concerns_event || !(choices.*choice.is_made)) continue;
    choices.*choice.is_made = false;
    return true;
  }
  return false;
}

Result<void> probe(EventChoices& choices, bool is_sampling) {
  for (;;) {
    perf_event_attr attr = is_sampling ? sampling_attr(choices) : side_band_attr(choices);
    attr.disabled = 1;
    if (open_event(attr, 0, -1).is_open()) return {};
    const int error_number = errno;
    if (give_up_something(choices, error_number, is_sampling)) continue;
    return tl::unexpected<Error>(probe_error(error_number, choices));
  }
}

Error target_permission_error(int error_number, pid_t pid) {
  if (::geteuid() == 0) {
    return {ErrorCode::PermissionDenied,
            fmt::format("process {} may not be sampled by this root: {}", pid,
                        os::how_to_get(os::kCapSysPtrace))};
  }
  const auto uid = os::effective_uid_of(pid);
  if (uid && *uid == ::geteuid()) {
    return {
        ErrorCode::PermissionDenied,
        fmt::format("process {} is yours, but closed to others (prctl PR_SET_DUMPABLE 0, changed "
                    "ids, or a file that may not be read). Run as root",
                    pid)};
  }
  if (uid) {
    return {ErrorCode::PermissionDenied,
            fmt::format("process {} belongs to user {}. Run as that user or as root", pid, *uid)};
  }
  return {ErrorCode::PermissionDenied,
          fmt::format("perf_event_open for process {}: {}. Run as root", pid,
                      os::describe_errno(error_number))};
}

}  // namespace

std::optional<uint32_t> max_sample_rate_hz() {
  const auto limit = read_number("/proc/sys/kernel/perf_event_max_sample_rate");
  return limit && *limit >= 0 ? std::optional(static_cast<uint32_t>(*limit)) : std::nullopt;
}

os::Fd open_event(const perf_event_attr& attr, pid_t tid, int cpu) {
  long fd = -1;
  do {  // it waits, and can be interrupted, while the target is within exec
    fd = ::syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return os::Fd(static_cast<int>(fd));
}

Result<EventChoices> probe_choices(EventChoices wanted) {
  const auto max_chain = read_number("/proc/sys/kernel/perf_event_max_stack");
  if (max_chain && *max_chain < wanted.chain_entries) {
    wanted.chain_entries = static_cast<uint16_t>(std::max(*max_chain, 0));
  }
  if (auto side_band = probe(wanted, false); !side_band) {
    return tl::unexpected<Error>(side_band.error());
  }
  if (auto sampling = probe(wanted, true); !sampling) {
    return tl::unexpected<Error>(sampling.error());
  }
  return wanted;
}

Error explain_target_failure(int error_number, pid_t pid) {
  if (is_permission(error_number)) return target_permission_error(error_number, pid);
  return {os::error_code_of(error_number),
          fmt::format("perf_event_open for process {}: {}", pid, os::describe_errno(error_number))};
}

}  // namespace sentry_prof::sampling
