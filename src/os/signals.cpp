#include "os/signals.h"

#include "os/errors.h"
#include "os/memory_privacy.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <optional>

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

// As this process found them when it started; install() runs once, before any thread.
struct InheritedSignals {
  bool is_saved = false;  // all but the two that others than install() change, too
  std::optional<struct sigaction> on_broken_pipe, on_file_too_large;
  sigset_t mask{};
  struct sigaction on_interrupt = {};
  struct sigaction on_termination = {};
  struct sigaction on_child_end = {};
};
InheritedSignals g_inherited;

bool is_ignored(int signal) {
  struct sigaction action = {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t no_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  return signals;
}

sigset_t command_signals() {
  sigset_t signals = no_signals();
  for (const int signal : {SIGUSR1, SIGUSR2, SIGWINCH, SIGIO}) sigaddset(&signals, signal);
  return signals;
}

constexpr int kOfTimers[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU};

// Without those that are ignored by now.
sigset_t ending_signals() {
  sigset_t signals = no_signals();
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  const auto add_unless_ignored = [&](int signal) {
    if (!is_ignored(signal)) sigaddset(&signals, signal);
  };
  for (const int signal : {SIGHUP, SIGQUIT, SIGPWR}) add_unless_ignored(signal);
  for (const int signal : kOfTimers) add_unless_ignored(signal);
  return signals;
}

void ignore(int signal, struct sigaction* previous) {
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  ::sigaction(signal, &action, previous);
}

void ignore_once(int signal, std::optional<struct sigaction>& inherited) {
  if (inherited) return;
  inherited.emplace();
  ignore(signal, &*inherited);
}

void set_default(int signal, struct sigaction* previous) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, previous);
}

void save_and_set_dispositions() {
  make_broken_pipe_an_error();
  make_size_limit_an_error();
  if (g_inherited.is_saved) return;
  // A shell without job control starts what goes before '&' with SIGINT ignored, so that ^C does
  // not reach it. Who sends us one by kill still means it.
  set_default(SIGINT, &g_inherited.on_interrupt);
  set_default(SIGTERM, &g_inherited.on_termination);
  // Ignored, it would take the launched command's status from us (POSIX, wait()).
  set_default(SIGCHLD, &g_inherited.on_child_end);
}

}  // namespace

Result<SignalSet> SignalSet::install() {
  const sigset_t ending = ending_signals();
  const sigset_t of_command = command_signals();
  sigset_t taken;
  sigorset(&taken, &ending, &of_command);
  save_and_set_dispositions();
  sigset_t previous_mask;
  if (::sigprocmask(SIG_BLOCK, &taken, &previous_mask) != 0) {
    return fail_with_errno(errno, "sigprocmask");
  }
  if (!g_inherited.is_saved) g_inherited.mask = previous_mask;
  g_inherited.is_saved = true;
  Fd fd(::signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
  Fd command_fd(::signalfd(-1, &of_command, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.is_open() || !command_fd.is_open()) return fail_with_errno(errno, "signalfd");
  return SignalSet(std::move(fd), std::move(command_fd));
}

std::optional<SignalSet::Taken> SignalSet::read_from(const Fd& fd) {
  signalfd_siginfo pending{};
  ssize_t count = 0;
  do {
    count = ::read(fd.get(), &pending, sizeof(pending));
  } while (count < 0 && errno == EINTR);
  if (count != sizeof(pending)) return std::nullopt;
  return Taken{static_cast<int>(pending.ssi_signo), pending.ssi_code == SI_KERNEL, pending.ssi_pid};
}

bool SignalSet::Taken::is_of_timer() const {
  return is_from_kernel && std::ranges::find(kOfTimers, number) != std::end(kOfTimers);
}

std::optional<SignalSet::Taken> SignalSet::take() const {
  const auto taken = read_from(fd_);
  if (taken && taken->is_of_timer()) {
    ::signal(taken->number, SIG_IGN);
    // Ignoring does for one that is unblocked; a blocked one stays pending, and would be read.
    const sigset_t ending = ending_signals();
    ::signalfd(fd_.get(), &ending, 0);
  }
  return taken;
}

bool SignalSet::is_ignored_by_children(int signal) const {
  return (signal == SIGINT && g_inherited.on_interrupt.sa_handler == SIG_IGN) ||
         (signal == SIGTERM && g_inherited.on_termination.sa_handler == SIG_IGN);
}

void SignalSet::let_next_one_kill() const {
  sigset_t ending = ending_signals();
  sigdelset(&ending, SIGQUIT);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (sigismember(&ending, signal)) ::signal(signal, SIG_DFL);
  }
  // The calling thread is enough: the kernel picks any thread that does not block the signal.
  ::pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
}

void SignalSet::hold_again() const {
  const sigset_t ending = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
}

void make_size_limit_an_error() { ignore_once(SIGXFSZ, g_inherited.on_file_too_large); }

void make_broken_pipe_an_error() { ignore_once(SIGPIPE, g_inherited.on_broken_pipe); }

void restore_signals_for_exec() {
  if (!g_inherited.is_saved) return;
  ::sigaction(SIGPIPE, &*g_inherited.on_broken_pipe, nullptr);
  ::sigaction(SIGXFSZ, &*g_inherited.on_file_too_large, nullptr);
  ::sigaction(SIGINT, &g_inherited.on_interrupt, nullptr);
  ::sigaction(SIGTERM, &g_inherited.on_termination, nullptr);
  ::sigaction(SIGCHLD, &g_inherited.on_child_end, nullptr);
  ::sigprocmask(SIG_SETMASK, &g_inherited.mask, nullptr);
}

void die_by_signal(int signal) {
  make_memory_private();  // SIGQUIT would leave a core, but nothing is wrong with us
  set_default(signal, nullptr);
  sigset_t only_this;
  sigemptyset(&only_this);
  sigaddset(&only_this, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only_this, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);  // a signal whose default is not to end the process
}

}  // namespace sentry_prof::os
