// What signals mean during a run, in one place. Of one that repeats another (signal_repeats.h)
// nothing more is made.
//
// Attached: the first one ends the recording; a further one, while the last file is being finished,
// leaves at once. With a launched command the first one is the command's business: ^C reaches it by
// the terminal, what was sent to us is passed on. A second one ends the recording, a third leaves.
// The first ends the recording, too, if the command was started with it ignored (behind a shell's
// '&'). SIGHUP is passed on, and ends the recording at once: nobody is there to send a second one.
// Once the command has ended there is nobody to pass on to: of two signals the second leaves.
// SIGQUIT (^\) is a launched command's, however often it comes: some dump their threads at it
// (Java, Go). Attached it is one of the others. SIGUSR1, SIGUSR2, SIGWINCH and SIGIO are passed on
// as they come: sentry-prof may be the first process of a container. Attached they mean nothing:
// who has logs reopened may send them to all of a service. A command that goes on when its
// recording is over (--duration) still gets what is sent to us.
// Signals of timers (alarm) are the first one where there was none, never a further one: what is
// being written is not left for them. So is that of our limit of CPU time (SIGXCPU), but that the
// command, which has a limit of its own, does not hear of it: it ends the recording at once.
#pragma once

#include "os/signals.h"
#include "recorder/signal_repeats.h"
#include "target/launch.h"

#include <cstdint>
#include <optional>

namespace sentry_prof::recorder {

class SignalPolicy {
 public:
  // `child`: the launched command, which must outlive this; or null.
  SignalPolicy(const os::SignalSet& signals, const target::LaunchedChild* child)
      : signals_(&signals), child_(child) {}

  // Before the launched command's exec, when it has no say in it: passes on all pending signals,
  // the terminal's, too, which may have come before there was a command that could get them.
  void before_exec();
  // Passes on what is a launched command's only. The others do so, too.
  void pass_through() const;
  // Deals with all pending signals. True if one of them ends the recording.
  bool ends_recording();
  // The same when the recording is over, and written: the first one that comes now ends us by it
  // afterwards, a further one at once: then this does not return.
  void while_finishing();
  // The same, until no repeat of the last signal is to be expected any more (0.1 s behind it): who
  // lets signals kill this process afterwards is not killed by one of those.
  void let_repeats_pass();
  // The signal that ended the recording; 0 if none did.
  int ending_signal() const { return ending_signal_; }
  // When a launched command was told to end last: by a SIGINT, SIGTERM or SIGHUP that was passed
  // on, or that it got by the terminal. Monotonic.
  std::optional<uint64_t> passed_on_at_ns() const { return passed_on_at_ns_; }
  // Whether a ^C has come by the terminal, which the launched command got, too. A shell's loop goes
  // on unless what it waits for dies of that ^C (bash, zsh: "wait and cooperative exit").
  bool is_interrupted_at_terminal() const { return is_interrupted_at_terminal_; }

 private:
  // The next pending signal that another process, or the terminal, sent.
  std::optional<os::SignalSet::Taken> take();
  bool is_repeat(const os::SignalSet::Taken& signal);
  // False, and not done, of a signal that means more.
  bool pass_to_child_alone(const os::SignalSet::Taken& signal) const;
  void pass_on(const os::SignalSet::Taken& signal) const;
  // Of a timer, when nobody is left whom it concerns.
  bool is_needless(const os::SignalSet::Taken& signal) const;

  const os::SignalSet* signals_;
  const target::LaunchedChild* child_;
  int ending_signal_ = 0;
  SignalRepeats repeats_;
  std::optional<uint64_t> passed_on_at_ns_;
  bool is_interrupted_at_terminal_ = false;
};

}  // namespace sentry_prof::recorder
