// How a recording is ended from outside.
#include "command_line.h"
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"
#include "text_file.h"

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace sentry_prof::testing;

namespace {

// Under any name, which may be a passing one.
bool holds_written_file(const TemporaryDirectory& directory) {
  std::error_code gone;
  for (const auto& file : std::filesystem::directory_iterator(directory.path())) {
    if (const auto size = file.file_size(gone); !gone && size > 0) return true;
  }
  return false;
}

// Whether a set of proc(5)'s status has it.
bool has_signal(pid_t pid, const std::string& set, int signal) {
  const std::string status = contents_of("/proc/" + std::to_string(pid) + "/status");
  const size_t at = status.find(set + ":");
  if (at == status.npos) return false;
  const uint64_t mask = std::stoull(status.substr(at + set.size() + 1), nullptr, 16);
  return (mask >> (signal - 1) & 1) != 0;
}

bool blocks(pid_t pid, int signal) { return has_signal(pid, "SigBlk", signal); }
bool is_pending(pid_t pid, int signal) { return has_signal(pid, "ShdPnd", signal); }

// A second signal that comes this soon behind the first is a repeat. On a busy machine what is sent
// at once may be parted by more.
constexpr double kWithinMoment_s = 0.05;

// A command that says "ready PID" first.
pid_t pid_told_by(const BackgroundProcess& profiler) {
  const std::string begin = "ready ";
  const auto line_end = [&] { return profiler.standard_output().find('\n'); };
  REQUIRE(wait_until([&] { return line_end() != std::string::npos; }));
  REQUIRE(profiler.standard_output().starts_with(begin));
  return std::stoi(profiler.standard_output().substr(begin.size()));
}

}  // namespace

TEST_CASE("SIGINT ends a recording that a shell started behind '&'", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  const auto in_background = [&](const RecordArguments& what) {
    Command command = record_command(directory, what);
    command.arguments.insert(command.arguments.begin(),
                             {"sh", "-c", "\"$0\" \"$@\" & echo pid $!; wait $!"});
    return command;
  };
  const auto interrupt = [](const BackgroundProcess& shell) {
    const int pid = std::stoi(shell.standard_output().substr(4));
    REQUIRE(wait_until_sampling(pid));
    sleep_for(0.5);
    ::kill(pid, SIGINT);
  };
  SECTION("attached") {
    BackgroundProcess shell(in_background({.pids = {target.pid()}}));
    REQUIRE(shell.wait_for_output("pid "));
    interrupt(shell);
    const Recording recording = read_recording(directory, shell.wait());
    CHECK(recording.result.status() == 128 + SIGINT);
    CHECK(recording.profile().share_containing("alpha") > 0.3);
  }
  SECTION("with a command, which ignores it, too") {
    BackgroundProcess shell(in_background({.command = {target_path("spin"), "3"}}));
    REQUIRE(shell.wait_for_output("pid "));
    interrupt(shell);
    CHECK(shell.wait_for_output("the command goes on"));
    const Recording recording = read_recording(directory, shell.wait());
    CHECK(recording.result.status() == 0);
    CHECK(recording.summary().number("duration_s") < 2.5);
  }
}

TEST_CASE("^C or ^\\ while attached: the whole file is written, then the signal ends it",
          "[signals]") {
  SKIP_IF(missing_perf());
  const int signal = GENERATE(SIGINT, SIGQUIT);
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  BackgroundProcess profiler(record_command(directory, {.pids = {target.pid()}}));
  REQUIRE(wait_until_sampling(profiler.pid()));
  REQUIRE(wait_until_used(target.pid(), 0.2));
  profiler.send_signal(signal);
  const Recording recording = read_recording(directory, profiler.wait());
  CHECK(recording.result.status() == -signal);
  REQUIRE(recording.profiles.size() == 1);
  CHECK(recording.profile().share_containing("alpha") > 0.3);
  CHECK(target.is_running());
}

TEST_CASE("What timers and limits send, and a power failure, ends a recording as SIGTERM does",
          "[signals]") {
  SKIP_IF(missing_perf());
  const int signal = GENERATE(SIGXCPU, SIGALRM, SIGVTALRM, SIGPROF, SIGPWR);
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  BackgroundProcess profiler(record_command(directory, {.pids = {target.pid()}}));
  REQUIRE(wait_until_sampling(profiler.pid()));
  sleep_for(0.5);
  profiler.send_signal(signal);
  const Recording recording = read_recording(directory, profiler.wait());
  CHECK(recording.result.status() == -signal);
  REQUIRE(recording.profiles.size() == 1);
  CHECK(recording.profile().share_containing("alpha") > 0.3);
}

TEST_CASE("What has logs reopened ends no recording of others", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  BackgroundProcess profiler(
      record_command(directory, {.options = {"-d", "1"}, .pids = {target.pid()}}));
  REQUIRE(wait_until_sampling(profiler.pid()));
  for (const int signal : {SIGUSR1, SIGUSR2, SIGIO, SIGWINCH}) profiler.send_signal(signal);
  const Recording recording = read_recording(directory, profiler.wait());
  CHECK(recording.result.status() == 0);
  CHECK(recording.summary().number("duration_s") > 0.9);
}

// The limit is set when two seconds of CPU time are used up: two signals come one behind the
// other (check_process_timers() in kernel/time/posix-cpu-timers.c).
TEST_CASE("A limit of CPU time ends a recording, however often the kernel tells of it",
          "[signals]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("prlimit"));
  const bool is_launched = GENERATE(false, true);
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  RecordArguments what{.pids = {target.pid()}};
  if (is_launched) what = {.command = {target_path("spin"), "10"}};
  Command command = record_command(directory, what);
  command.arguments.insert(
      command.arguments.begin(),
      {"bash", "-c",
       "until read -r t _ < <(cut -d' ' -f14 /proc/$$/stat); [ \"$t\" -ge 210 ]; do "
       "for ((i = 0; i < 500000; i++)); do :; done; done; echo used; exec \"$0\" \"$@\""});
  BackgroundProcess profiler(command);
  REQUIRE(profiler.wait_for_output("used"));
  REQUIRE(wait_until_sampling(profiler.pid()));
  sleep_for(0.5);
  const std::string pid = std::to_string(profiler.pid());
  REQUIRE(run_command({.arguments = {"prlimit", "--pid", pid, "--cpu=1:60"}}).status() == 0);
  const Recording recording = read_recording(directory, profiler.wait());
  INFO(recording.result.standard_error);
  CHECK(recording.result.status() == (is_launched ? 0 : -SIGXCPU));
  REQUIRE(recording.profiles.size() == 1);
  // The kernel looks at the limit only in the timer interrupts that hit the recorder.
  CHECK(recording.summary().number("duration_s") < 9);
}

TEST_CASE("An alarm goes on to the launched command, for which it was set", "[signals]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("python3"));
  const TemporaryDirectory directory;
  Command command = record_command(directory, {.command = {target_path("spin"), "60"}});
  command.arguments.insert(command.arguments.begin(), {"python3", "-c",
                                                       "import os, signal, sys\n"
                                                       "signal.alarm(1)\n"
                                                       "os.execv(sys.argv[1], sys.argv[1:])"});
  const Recording recording = read_recording(directory, run_command(command));
  CHECK(recording.result.status() == 128 + SIGALRM);
  CHECK(recording.profiles.size() == 1);
}

TEST_CASE("A first signal while the last file is written waits for it, a second does not",
          "[signals]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("strace"));
  if (run_command({.arguments = {"strace", "-o", "/dev/null", "true"}}).status() != 0) {
    return note_skip("strace may not trace");
  }
  const bool is_sent_twice = GENERATE(false, true);
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  Command command = record_command(directory, {.options = {"-d", "1"}, .pids = {target.pid()}});
  // The disk takes two seconds for the file.
  command.arguments.insert(
      command.arguments.begin(),
      {"strace", "-f", "-o", "/dev/null", "-e", "trace=fsync", "-e",
       "inject=fsync:delay_enter=2000000", "sh", "-c", "echo pid $$; exec \"$0\" \"$@\""});
  BackgroundProcess profiler(command);
  REQUIRE(profiler.wait_for_output("pid "));
  const int pid = std::stoi(profiler.standard_output().substr(4));
  // Not the empty one that shows at the start whether the place can be written to.
  REQUIRE(wait_until([&] { return holds_written_file(directory); }));
  ::kill(pid, SIGTERM);
  if (is_sent_twice) {
    sleep_for(0.3);
    ::kill(pid, SIGINT);  // another one: two of a kind may be one
  }
  CHECK(profiler.wait().status() == (is_sent_twice ? -SIGINT : -SIGTERM));
  CHECK(std::filesystem::exists(directory.file("out.json")) != is_sent_twice);
}

// As timeout(1) does: to the process, and at once to its group; systemd sends a SIGHUP behind its
// SIGTERM. Of a target that uses no CPU nothing is left to be written, so that the second one comes
// when all is over but the report.
TEST_CASE("A signal that comes twice within a moment ends the recording as if it came once",
          "[signals]") {
  SKIP_IF(missing_perf());
  BackgroundProcess target({.arguments = {"sleep", "60"}});
  int ended = 0;
  for (int i = 0; ended < 12 && i < 60; ++i) {
    const bool is_of_systemd = i % 3 == 0;
    const int first = is_of_systemd ? SIGTERM : SIGINT;
    INFO(i);
    const TemporaryDirectory directory;
    BackgroundProcess profiler(record_command(directory, {.pids = {target.pid()}}));
    REQUIRE(wait_until_sampling(profiler.pid()));
    sleep_for(0.2);
    const double sent_at_s = now_s();
    profiler.send_signal(first);
    sleep_for(0.0005 * ended);
    profiler.send_signal(is_of_systemd ? SIGHUP : SIGINT);
    if (now_s() - sent_at_s > kWithinMoment_s) continue;
    ++ended;
    const CommandResult result = profiler.wait();
    CHECK((result.status() == -first || result.status() == -SIGHUP));
    CHECK(contains(result.standard_error, "nothing was written"));
    CHECK(exists(directory.file("summary.json")));
  }
  CHECK(ended == 12);
}

TEST_CASE("A repeat of a signal is one, however late it is looked at", "[signals]") {
  SKIP_IF(missing_perf());
  BackgroundProcess target({.arguments = {"sleep", "60"}});
  bool was_within_moment = false;
  for (int i = 0; !was_within_moment && i < 10; ++i) {
    const TemporaryDirectory directory;
    BackgroundProcess profiler(record_command(directory, {.pids = {target.pid()}}));
    REQUIRE(wait_until_sampling(profiler.pid()));
    sleep_for(0.2);
    const double sent_at_s = now_s();
    profiler.send_signal(SIGTERM);
    REQUIRE(wait_until([&] { return !is_pending(profiler.pid(), SIGTERM); }));
    profiler.send_signal(SIGSTOP);  // as if its file took long
    profiler.send_signal(SIGHUP);
    was_within_moment = now_s() - sent_at_s < kWithinMoment_s;
    sleep_for(0.3);
    profiler.send_signal(SIGCONT);
    const CommandResult result = profiler.wait();
    if (!was_within_moment) continue;
    CHECK(result.status() == -SIGTERM);
    CHECK(exists(directory.file("summary.json")));
  }
  CHECK(was_within_moment);
}

TEST_CASE("SIGQUIT is the launched command's, however often it comes", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const char* const script =
      "trap 'echo dumped; n=$((n + 1))' QUIT; n=0; echo ready; while [ $n -lt 3 ]; do :; done";
  BackgroundProcess profiler(record_command(directory, {.command = {"sh", "-c", script}}));
  REQUIRE(profiler.wait_for_output("ready"));
  for (int i = 0; i < 3; ++i) {
    sleep_for(0.3);
    profiler.send_signal(SIGQUIT);
  }
  const Recording recording = read_recording(directory, profiler.wait());
  CHECK(recording.result.status() == 0);
  CHECK(recording.result.standard_output == "ready\ndumped\ndumped\ndumped\n");
  REQUIRE(recording.profiles.size() == 1);
  CHECK(recording.summary().number("duration_s") > 0.8);
}

TEST_CASE("What servers reload and reopen logs by reaches the launched command, and ends nothing",
          "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const char* const script =
      "trap 'echo reopened' USR1; trap 'echo reloaded' USR2; trap 'echo resized' WINCH; "
      "trap 'end=1' TERM; kill -USR1 $PPID; echo ready; while [ -z \"$end\" ]; do :; done";
  BackgroundProcess profiler(record_command(directory, {.command = {"sh", "-c", script}}));
  REQUIRE(profiler.wait_for_output("ready"));
  sleep_for(0.3);  // until its own is taken: two that are pending are one
  for (const auto& [signal, answer] : std::initializer_list<std::pair<int, const char*>>{
           {SIGUSR1, "reopened"}, {SIGUSR2, "reloaded"}, {SIGWINCH, "resized"}}) {
    profiler.send_signal(signal);
    CHECK(profiler.wait_for_output(answer));
  }
  profiler.send_signal(SIGTERM);
  const Recording recording = read_recording(directory, profiler.wait());
  CHECK(recording.result.status() == 0);
  CHECK(recording.profiles.size() == 1);
  // What it sent to its parent itself is not for itself.
  CHECK(recording.result.standard_output == "ready\nreopened\nreloaded\nresized\n");
}

TEST_CASE("A signal at any moment leaves a whole file or none", "[signals]") {
  SKIP_IF(missing_perf());
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  for (const double delay_s : {0.0, 0.002, 0.01, 0.03, 0.1, 0.3}) {
    INFO(delay_s);
    const TemporaryDirectory directory;
    BackgroundProcess profiler(record_command(directory, {.pids = {target.pid()}}));
    sleep_for(delay_s);
    profiler.send_signal(SIGTERM);
    const Recording recording = read_recording(directory, profiler.wait());
    CHECK(recording.result.status() == -SIGTERM);
    CHECK(target.is_running());
    const std::string file = directory.file("out.json");
    if (exists(file)) CHECK_FALSE(LoadedProfile::load(file).samples.empty());
  }
}

// As ^C does, whose signal the command gets, too: before its exec it has nothing to do about it.
TEST_CASE("A signal to the group at any moment is the launched command's end", "[signals]") {
  SKIP_IF(missing_perf());
  int were_installed = 0;
  double delay_s = 0;
  // Until some came behind the start, however long that takes here.
  while (were_installed < 20 && delay_s < 10) {
    delay_s = std::max(delay_s + 0.001, delay_s * (delay_s < 0.04 ? 1 : 1.5));
    INFO(delay_s);
    const TemporaryDirectory directory;
    BackgroundProcess profiler(record_command(directory, {.command = {"sleep", "60"}}));
    sleep_for(delay_s);
    const bool was_installed = blocks(profiler.pid(), SIGINT);
    ::kill(-profiler.pid(), SIGINT);
    const CommandResult result = profiler.wait();
    INFO(result.standard_error);
    const bool is_commands_end = result.status() == 128 + SIGINT;
    CHECK((is_commands_end || (!was_installed && result.status() == -SIGINT)));
    were_installed += was_installed ? 1 : 0;
  }
  CHECK(were_installed > 0);
}

TEST_CASE("A second signal ends it even while the first is dealt with", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  BackgroundProcess profiler(record_command(directory, {.pids = {target.pid()}}));
  REQUIRE(wait_until_sampling(profiler.pid()));
  REQUIRE(wait_until_used(target.pid(), 0.2));
  profiler.send_signal(SIGTERM);
  profiler.send_signal(SIGINT);
  const CommandResult result = profiler.wait();
  CHECK_FALSE(result.timed_out);
  CHECK((result.status() == -SIGTERM || result.status() == -SIGINT));
  CHECK(target.is_running());
  if (exists(directory.file("out.json"))) {
    CHECK(LoadedProfile::load(directory.file("out.json")).share_containing("alpha") > 0.3);
  }
}

TEST_CASE("A parent that ignored SIGCHLD does not take the command's status", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const CommandResult result =
      run_command({.arguments = {"env", "--ignore-signal=CHLD", sentry_prof_path(), "record", "-o",
                                 directory.file("out.json"), "--", "sh", "-c",
                                 "while [ $((i += 1)) -lt 100000 ]; do :; done; exit 5"}});
  INFO(result.standard_error);
  CHECK(result.status() == 5);
}

TEST_CASE("The launched command ignores nothing that sentry-prof was not started with",
          "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const auto ignored = [&](const std::string& trap) {
    Command command =
        record_command(directory, {.command = {"grep", "SigIgn", "/proc/self/status"}});
    command.arguments.insert(command.arguments.begin(), {"sh", "-c", trap + "exec \"$0\" \"$@\""});
    const std::string line = run_command(command).standard_output;
    return std::stoull(line.substr(line.find(':') + 1), nullptr, 16);
  };
  const auto bits = uint64_t{1} << (SIGXFSZ - 1) | uint64_t{1} << (SIGPIPE - 1);
  CHECK((ignored("") & bits) == 0);
  CHECK((ignored("trap '' XFSZ PIPE; ") & bits) == bits);
}

TEST_CASE("What ended the launched command is said, as shells do", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const auto end_by = [&](const std::string& signal) {
    const CommandResult result = run_sentry_prof(
        {"record", "-o", directory.file("out.json"), "--", "sh", "-c", "kill -" + signal + " $$"});
    INFO(result.standard_error);
    const bool is_said = contains(result.standard_error, "the command was ended by signal");
    return std::pair(result.status(), is_said);
  };
  CHECK(end_by("KILL") == std::pair(128 + SIGKILL, true));
  CHECK(end_by("PIPE") == std::pair(128 + SIGPIPE, false));
}

TEST_CASE("SIGTERM goes on to the launched command, and all of it is written", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess profiler(record_command(
      directory,
      {.command = {"sh", "-c",
                   "trap 'echo told; exit 5' TERM; echo ready $$; while :; do :; done"}}));
  const pid_t command = pid_told_by(profiler);
  REQUIRE(wait_until_used(command, 0.2));
  profiler.send_signal(SIGTERM);
  const Recording recording = read_recording(directory, profiler.wait());
  CHECK(recording.result.status() == 5);
  CHECK(recording.result.standard_output == "ready " + std::to_string(command) + "\ntold\n");
  REQUIRE(recording.profiles.size() == 1);
  CHECK(recording.profile().busy_samples().size() > 50);
}

TEST_CASE("A command that ignores SIGTERM does not keep the profile back", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess profiler(
      record_command(directory, {.command = {"sh", "-c",
                                             "trap '' TERM; echo ready $$; i=0; "
                                             "while [ $i -lt 9000000 ]; do i=$((i + 1)); done"}}));
  REQUIRE(wait_until_used(pid_told_by(profiler), 0.2));
  profiler.send_signal(SIGTERM);
  sleep_for(0.3);
  CHECK(profiler.is_running());
  profiler.send_signal(SIGTERM);
  CHECK(wait_until([&] { return exists(directory.file("out.json")); }));
  CHECK(wait_until([&] { return exists(directory.file("summary.json")); }));
  CHECK(LoadedProfile::load(directory.file("out.json")).busy_samples().size() > 50);
  sleep_for(0.3);  // the same signal again within a moment counts as one
  profiler.send_signal(SIGTERM);
  CHECK(profiler.wait().status() == -SIGTERM);
  profiler.kill_group();  // the command, which goes on
}

TEST_CASE("With the command ended, signals end a profiler whose output nobody reads", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string pipe = directory.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  const int writer = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK);
  while (::write(writer, "x", 1) == 1) continue;  // no room is left in it
  const auto ends = [&](const std::string& options) {
    BackgroundProcess profiler(
        {.arguments = {"sh", "-c",
                       "exec \"$0\" record -F 997 " + options + " -- \"$1\" 0.5 > \"$2\"",
                       sentry_prof_path(), target_path("spin"), pipe}});
    sleep_for(1.5);
    CHECK(profiler.is_running());
    for (int i = 0; i < 3 && profiler.is_running(); ++i) {
      profiler.send_signal(SIGTERM);
      sleep_for(0.5);
    }
    const CommandResult result = profiler.wait(1);
    CHECK_FALSE(result.timed_out);
    CHECK(result.status() == -SIGTERM);
  };
  ends("-o -");
  ends("-o " + directory.file("out.json") + " --summary -");
  CHECK(exists(directory.file("out.json")));
  ::close(reader);
  ::close(writer);
}
