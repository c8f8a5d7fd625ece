// Processes and threads that run now.
#pragma once

#include "os/fd.h"
#include "sentry_prof/result.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace sentry_prof::os {

// Threads of a process, sorted, from /proc/PID/task. Gone if the process has ended.
Result<std::vector<pid_t>> list_threads(pid_t pid);

// The CPUs that are online and that a thread may run on, in ascending order; of the calling thread
// with 0. Empty if it has ended.
// Source: sched_getaffinity(2); the kernel leaves out those that are offline.
std::vector<int> list_allowed_cpus(pid_t tid);

// Processes that threads of this one have started and that it has not waited for: zombies are among
// them. Of its first 256 threads. Empty where the kernel does not tell (CONFIG_PROC_CHILDREN).
// Source: /proc/PID/task/TID/children, proc(5).
std::vector<pid_t> list_children(pid_t pid);

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
