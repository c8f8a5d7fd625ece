// Running programs from a test: to their end, or in the background.
#pragma once

#include "support/wait_until.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace sentry_prof::testing {

struct Command {
  std::vector<std::string> arguments;              // the program first; looked up in PATH
  std::map<std::string, std::string> environment;  // added to this process's own
  std::string directory;                           // to run in; empty: this process's own
  double time_out_s = 120;                         // then it is killed with its process group
};

struct CommandResult {
  bool timed_out = false;
  int wait_status = 0;
  std::string standard_output;
  std::string standard_error;

  // The exit status, or minus the number of the signal that ended it.
  int status() const;
};

// Standard input is /dev/null.
CommandResult run_command(const Command& command);

// Until process `pid` has used that much more CPU time, in ticks of 10 ms, however busy the machine
// is; false if that takes too long, or it ends.
bool wait_until_used(pid_t pid, double cpu_s);

// A process of its own group. The destructor kills it if it still runs.
class BackgroundProcess {
 public:
  explicit BackgroundProcess(const Command& command);
  ~BackgroundProcess();
  BackgroundProcess(const BackgroundProcess&) = delete;
  BackgroundProcess& operator=(const BackgroundProcess&) = delete;

  pid_t pid() const { return pid_; }
  void send_signal(int signal) const;
  // For what it may leave running: after wait() only while something does, or its id may be
  // somebody else's.
  void kill_group() const;
  bool is_running();
  // What it wrote so far.
  std::string standard_output() const;
  std::string standard_error() const;
  // False if `text` does not appear on its standard output or error before it ends, or in time.
  bool wait_for_output(std::string_view text, double time_out_s = 30);
  // To its end, at most `time_out_s`; then it is killed.
  CommandResult wait(double time_out_s = 120);

 private:
  bool poll_end();

  pid_t pid_ = -1;
  bool has_ended_ = false;
  int wait_status_ = 0;
  int output_fd_ = -1;  // memory files: no reader is needed, and nobody can block on them
  int error_fd_ = -1;
};

using test::now_s;
using test::sleep_for;
using test::wait_until;

}  // namespace sentry_prof::testing
