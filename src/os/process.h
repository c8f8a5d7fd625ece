// Processes and threads that run now.
#pragma once

#include "os/fd.h"
#include "sentry_prof/result.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace sentry_prof::os {

// Threads of a process, sorted, from /proc/PID/task. Gone if the process has ended.
Result<std::vector<pid_t>> list_threads(pid_t pid);

// The CPUs that are online and that a thread may run on, in ascending order; of the calling thread
// with 0. Empty if it has ended.
// Source: sched_getaffinity(2); the kernel leaves out those that are offline.
std::vector<int> list_allowed_cpus(pid_t tid);

struct ChildProcess {
  pid_t parent = 0;
  pid_t pid = 0;
  auto operator<=>(const ChildProcess&) const = default;
};

// All processes, each with the one whose threads started it, or that took it on as an orphan;
// sorted. Zombies that nobody waited for are among them. Of a machine with more than 100,000 some
// are missing. Empty if there is no `proc`.
// Source: /proc/PID/stat, proc_pid_stat(5). Other than /proc/PID/task/TID/children that is in every
// kernel, and one reading a process, not one a thread.
std::vector<ChildProcess> list_child_processes(const std::string& proc = "/proc");

// By whose id the process's memory and files can be asked for: its own, or that of one of its
// threads, where the main thread has ended before the others. Such a one has none of its own any
// more, and any thread's id stands for its process in /proc/ID (proc(5)) and process_vm_readv(2).
pid_t living_thread_of(pid_t pid);
// Whether nothing is left of the process. A zombie, which has ended and waits for its parent to
// take notice of that, is still there.
bool is_gone(pid_t pid);
// Of a thread, or a process's main one: it is a zombie, or nothing at all any more.
bool has_ended(pid_t tid);

// Whether we are the first process of our pid namespace, as the entry point of a container is.
bool is_init();
// As such a one we are the parent of all who lost theirs: takes notice of their ends. Else they
// would stay, as zombies, until no pid is left. Leaves `own`, for which its starter waits, and,
// once that has ended, those that the kernel lists behind it.
void reap_orphans(pid_t own);

// Readable when the process has ended. Gone if it has ended and was reaped.
Result<Fd> open_pidfd(pid_t pid);

// Whether this is our process, or the one that started us, or the one that started that, and so on.
bool is_us_or_above_us(pid_t pid);

// Stopped by a signal (SIGSTOP, ^Z) or a debugger, as its main thread says.
bool is_stopped(pid_t pid);

// Nothing if the process has ended.
std::optional<uint32_t> effective_uid_of(pid_t pid);

}  // namespace sentry_prof::os
