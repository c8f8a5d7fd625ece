// What a user meets who does it wrong, or on a machine that does not let them.
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sentry_prof::testing;

namespace {

CommandResult run_sentry_prof(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), sentry_prof_path());
  return run_command({.arguments = std::move(arguments)});
}

void check_says(const CommandResult& result, const std::string& text) {
  INFO(result.standard_error);
  CHECK(result.standard_error.find(text) != std::string::npos);
}

bool exists(const std::string& path) { return std::filesystem::exists(path); }

size_t files_in(const TemporaryDirectory& directory) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    count += entry.exists() ? 1 : 0;
  }
  return count;
}

// A program on a terminal of its own; what it shows there is kept.
class TerminalSession {
 public:
  explicit TerminalSession(std::vector<std::string> arguments) {
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      ::execvp(pointers[0], pointers.data());
      ::_exit(127);
    }
  }
  ~TerminalSession() {
    if (!has_ended_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(terminal_);
  }
  TerminalSession(const TerminalSession&) = delete;
  TerminalSession& operator=(const TerminalSession&) = delete;

  void type(const std::string& keys) { CHECK(::write(terminal_, keys.data(), keys.size()) > 0); }

  // Reads until the text appears; false if the program ends or a minute passes before.
  bool wait_for(std::string_view text) {
    return wait_until([&] { return !read_more() || shown_.find(text) != std::string::npos; }, 60) &&
           shown_.find(text) != std::string::npos;
  }

  int wait_for_end() {
    wait_until([&] { return !read_more(); }, 60);
    int status = 0;
    has_ended_ = ::waitpid(pid_, &status, 0) == pid_;
    return status;
  }

  const std::string& shown() const { return shown_; }

 private:
  bool read_more() {
    char buffer[4096];
    const ssize_t count = ::read(terminal_, buffer, sizeof buffer);
    if (count > 0) shown_.append(buffer, static_cast<size_t>(count));
    return count > 0;  // EIO: nobody has the terminal open any more
  }

  pid_t pid_ = -1;
  int terminal_ = -1;
  bool has_ended_ = false;
  std::string shown_;
};

}  // namespace

TEST_CASE("Without arguments, or with wrong ones, the usage is told", "[usage]") {
  const CommandResult nothing = run_sentry_prof({});
  CHECK(nothing.status() == 2);
  check_says(nothing, "--help");

  const CommandResult no_target = run_sentry_prof({"record"});
  CHECK(no_target.status() == 2);
  check_says(no_target, "nothing to record: give -p PID, or a command after '--'");

  CHECK(run_sentry_prof({"record", "-p", "1", "--", "true"}).status() == 2);
  CHECK(run_sentry_prof({"record", "--frequency", "0", "--", "true"}).status() == 2);
  CHECK(run_sentry_prof({"record", "-p", "none"}).status() == 2);
  CHECK(run_sentry_prof({"record", "--no-such-option", "--", "true"}).status() == 2);
  CHECK(run_sentry_prof({"record", "--format", "v1", "--chunk-seconds", "31", "--", "true"})
            .status() == 2);
  CHECK(run_sentry_prof({"record", "--mode", "wall", "--", "true"}).status() == 2);
}

TEST_CASE("A release or environment that Sentry would refuse is wrong usage", "[usage]") {
  const CommandResult release =
      run_sentry_prof({"record", "--release", "team/app@1", "--", "true"});
  CHECK(release.status() == 2);
  check_says(release, "--release 'team/app@1' has a slash");
  CHECK(run_sentry_prof({"record", "--environment", std::string(65, 'e'), "--", "true"}).status() ==
        2);
  const CommandResult variable =
      run_command({.arguments = {sentry_prof_path(), "record", "--", "true"},
                   .environment = {{"SENTRY_ENVIRONMENT", "a\nb"}}});
  CHECK(variable.status() == 2);
  check_says(variable, "SENTRY_ENVIRONMENT");
}

TEST_CASE("--help and --version are answers, not errors", "[usage]") {
  const CommandResult help = run_sentry_prof({"record", "--help"});
  CHECK(help.status() == 0);
  CHECK(help.standard_output.find("Examples:") != std::string::npos);
  CHECK(run_sentry_prof({"--version"}).status() == 0);
}

TEST_CASE("A process that does not exist is named", "[targets]") {
  BackgroundProcess ended({.arguments = {"true"}});
  ended.wait();
  const std::string pid = std::to_string(ended.pid());
  const CommandResult result = run_sentry_prof({"record", "-p", pid, "-o", "-"});
  CHECK(result.status() == 1);
  check_says(result, pid);
}

TEST_CASE("A thread of the kernel is refused with its reason", "[targets]") {
  std::string name;
  std::getline(std::ifstream("/proc/2/comm"), name);
  SKIP_IF(name == "kthreadd" ? std::nullopt
                             : std::optional<std::string>("no kernel threads to be seen here"));
  const CommandResult result = run_sentry_prof({"record", "-p", "2", "-o", "-"});
  CHECK(result.status() == 1);
  check_says(result, "kernel");
}

TEST_CASE("A command that does not exist, or may not run, has the shell's status", "[launch]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string output = directory.file("out.json");
  const CommandResult missing = run_sentry_prof({"record", "-o", output, "--", "/no/such/command"});
  CHECK(missing.status() == 127);
  check_says(missing, "/no/such/command");

  std::ofstream(directory.file("plain")) << "text\n";
  const CommandResult plain =
      run_sentry_prof({"record", "-o", output, "--", directory.file("plain")});
  CHECK(plain.status() == 126);
  check_says(plain, "plain");
  CHECK(files_in(directory) == 1);  // only "plain"
}

TEST_CASE("The command's own end is passed through", "[launch]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  CHECK(record(directory, {.command = {"sh", "-c", "exit 3"}}).result.status() == 3);
  CHECK(record(directory, {.command = {"sh", "-c", "kill -TERM $$"}}).result.status() == 128 + 15);
  CHECK(record(directory, {.command = {"sh", "-c", "kill -SEGV $$"}}).result.status() == 128 + 11);
}

TEST_CASE("The command's own input, output and environment are left alone", "[launch]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording =
      record(directory, {.command = {"sh", "-c", "echo out $WORD; echo err >&2; ulimit -n"},
                         .environment = {{"WORD", "passed"}}});
  const std::string limit = run_command({.arguments = {"sh", "-c", "ulimit -n"}}).standard_output;
  CHECK(recording.result.standard_output == "out passed\n" + limit);
  CHECK(recording.result.standard_error.find("err\n") != std::string::npos);
}

TEST_CASE("A program too short for two samples leaves no file, and the summary says why",
          "[launch]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const Recording recording = record(directory, {.command = {"true"}, .frequency_hz = "1"});
  CHECK(recording.result.status() == 0);
  CHECK(recording.profiles.empty());
  CHECK(recording.summary().number("chunks") == 0);
}

TEST_CASE("An output directory that does not exist is told before anything runs", "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string output = directory.file("missing/out.json");
  const std::string trace = directory.file("the-command-ran");
  const CommandResult launched = run_sentry_prof({"record", "-o", output, "--", "touch", trace});
  CHECK(launched.status() == 125);
  check_says(launched, directory.file("missing"));
  CHECK_FALSE(exists(trace));

  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  const CommandResult attached =
      run_sentry_prof({"record", "-d", "1", "-o", output, "-p", std::to_string(target.pid())});
  CHECK(attached.status() == 7);
  check_says(attached, directory.file("missing"));
}

TEST_CASE("A read-only file system is told before anything runs", "[output]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_root());
  SKIP_IF(missing_mount_namespace());
  const TemporaryDirectory directory;
  const std::string script = "mount -t tmpfs -o ro none '" + directory.path() + "' && exec '" +
                             sentry_prof_path() + "' record -o '" + directory.file("out.json") +
                             "' -- '" + target_path("spin") + "' 0.3";
  const CommandResult result = run_command({.arguments = {"unshare", "-m", "sh", "-c", script}});
  CHECK(result.status() == 125);
  check_says(result, directory.path());
  check_says(result, "Read-only");
}

TEST_CASE("A full disk: an error that says so, and nothing half is left", "[output]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_root());
  SKIP_IF(missing_mount_namespace());
  const TemporaryDirectory directory;
  const std::string script = "mount -t tmpfs -o size=64k none '" + directory.path() + "' && '" +
                             sentry_prof_path() + "' record -F 5000 -o '" +
                             directory.file("out.json") + "' -- '" + target_path("spin") +
                             "' 1; status=$?; ls -A '" + directory.path() + "'; exit $status";
  const CommandResult result = run_command({.arguments = {"unshare", "-m", "sh", "-c", script}});
  CHECK(result.status() == 125);
  check_says(result, "No space left");
  check_says(result, "out.json");
  CHECK(result.standard_output.empty());  // what ls found
}

TEST_CASE("-o - writes the profile to standard output and nothing else", "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const CommandResult result = run_command(
      {.arguments = {"sh", "-c", "\"$0\" record -F 997 -o - -- \"$1\" 0.3 > \"$2\"",
                     sentry_prof_path(), target_path("spin"), directory.file("out.json")}});
  CHECK(result.status() == 0);
  CHECK(LoadedProfile::load(directory.file("out.json")).share_containing("spin_rounds") > 0.9);
}

TEST_CASE("-o - into a pipe that closes is an error, not a death", "[output]") {
  SKIP_IF(missing_perf());
  // Standard output closes at once: `true` reads nothing.
  const CommandResult result =
      run_command({.arguments = {"bash", "-c",
                                 "\"$0\" record -F 997 -o - -- \"$1\" 0.5 | true; "
                                 "exit ${PIPESTATUS[0]}",
                                 sentry_prof_path(), target_path("spin")}});
  CHECK(result.status() == 125);
  check_says(result, "Broken pipe");
}

TEST_CASE("-o - with standard output closed or full is an error", "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const auto record_to = [&](const std::string& redirection, const std::string& what) {
    return run_command(
        {.arguments = {"sh", "-c", "\"$0\" record -F 997 " + what + " " + redirection,
                       sentry_prof_path(), target_path("spin")}});
  };
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  const std::string attach = "-d 0.3 -o - -p " + std::to_string(target.pid());
  const CommandResult closed = record_to(">&-", attach);
  CHECK(closed.status() == 7);
  check_says(closed, "standard output is closed");
  const CommandResult full = record_to(">/dev/full", attach);
  CHECK(full.status() == 7);
  check_says(full, "No space left");
  CHECK(record_to(">&-", "-o - -- \"$1\" 0.3").status() == 125);
  CHECK(record_to(">/dev/full", "-o - -- \"$1\" 0.3").status() == 125);
  const std::string summary = "-o " + directory.file("out.json") + " --summary - -- \"$1\" 0.3";
  CHECK(record_to(">&-", summary).status() == 125);
}

TEST_CASE("An output that ends in '/' is a directory, and is made if it is not there", "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  const std::string pid = std::to_string(target.pid());
  const std::string name = "spin-" + pid + ".v2.json";
  const auto record_into = [&](const std::string& output) {
    return run_sentry_prof({"record", "-d", "0.3", "-F", "997", "-p", pid, "-o", output}).status();
  };
  CHECK(record_into(directory.file("profiles/")) == 0);
  CHECK(exists(directory.file("profiles/" + name)));
  CHECK(record_into(directory.path()) == 0);  // one that is there needs no '/'
  CHECK(exists(directory.file(name)));
  CHECK(record_into(directory.file("no/profiles/")) == 7);
  CHECK(record_into("") == 2);
}

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
    sleep_for(0.7);
    ::kill(std::stoi(shell.standard_output().substr(4)), SIGINT);
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

TEST_CASE("^C while attached: the whole file is written, then SIGINT ends it", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  BackgroundProcess profiler(record_command(directory, {.pids = {target.pid()}}));
  sleep_for(1.0);
  profiler.send_signal(SIGINT);
  const Recording recording = read_recording(directory, profiler.wait());
  CHECK(recording.result.status() == -SIGINT);
  REQUIRE(recording.profiles.size() == 1);
  CHECK(recording.profile().share_containing("alpha") > 0.3);
  CHECK(target.is_running());
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
  }
}

TEST_CASE("A second signal ends it even while the first is dealt with", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  BackgroundProcess profiler(record_command(directory, {.pids = {target.pid()}}));
  sleep_for(0.7);
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

TEST_CASE("SIGTERM goes on to the launched command, and all of it is written", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess profiler(record_command(
      directory,
      {.command = {"sh", "-c", "trap 'echo told; exit 5' TERM; echo ready; while :; do :; done"}}));
  REQUIRE(profiler.wait_for_output("ready"));
  sleep_for(0.5);
  profiler.send_signal(SIGTERM);
  const Recording recording = read_recording(directory, profiler.wait());
  CHECK(recording.result.status() == 5);
  CHECK(recording.result.standard_output == "ready\ntold\n");
  REQUIRE(recording.profiles.size() == 1);
  CHECK(recording.profile().busy_samples().size() > 50);
}

TEST_CASE("A command that ignores SIGTERM does not keep the profile back", "[signals]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess profiler(
      record_command(directory, {.command = {"sh", "-c",
                                             "trap '' TERM; echo ready; i=0; "
                                             "while [ $i -lt 9000000 ]; do i=$((i + 1)); done"}}));
  REQUIRE(profiler.wait_for_output("ready"));
  sleep_for(0.5);
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

TEST_CASE("^C on a terminal reaches the command once, and the profile is written", "[terminal]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string script =
      "trap 'echo interrupted' INT; trap 'exit 9' TERM; echo ready; i=0; "
      "while [ $i -lt 150000 ]; do i=$((i + 1)); done; exit 4";
  TerminalSession session({sentry_prof_path(), "record", "-F", "997", "-o",
                           directory.file("out.json"), "--", "sh", "-c", script});
  REQUIRE(session.wait_for("ready"));
  session.type("\x03");
  const int status = session.wait_for_end();
  INFO(session.shown());
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 4);
  const size_t first = session.shown().find("interrupted");
  REQUIRE(first != std::string::npos);
  CHECK(session.shown().find("interrupted", first + 1) == std::string::npos);
  CHECK(LoadedProfile::load(directory.file("out.json")).busy_samples().size() > 10);
}

namespace {

// What `sentry-prof record OPTIONS` shows on a terminal of the kind `term`.
std::string shown_on_terminal(const TemporaryDirectory& directory, const std::string& term,
                              const std::vector<std::string>& options) {
  std::vector<std::string> arguments = {"env",    "TERM=" + term, sentry_prof_path(),
                                        "record", "-o",           directory.file("out.json")};
  arguments.insert(arguments.end(), options.begin(), options.end());
  TerminalSession session(arguments);
  CHECK(session.wait_for_end() == 0);
  return session.shown();
}

bool has_live_line(const std::string& shown) {
  return shown.find("\r\x1b[K") != std::string::npos &&
         shown.find(" samples  ") != std::string::npos;
}

}  // namespace

TEST_CASE("A terminal shows a live line, a pipe or a dumb terminal does not", "[terminal]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  const std::vector<std::string> attach = {"-d", "1", "-p", std::to_string(target.pid())};
  const std::string shown = shown_on_terminal(directory, "xterm", attach);
  INFO(shown);
  CHECK(has_live_line(shown));
  const std::string dumb = shown_on_terminal(directory, "dumb", attach);
  CHECK(dumb.find('\x1b') == std::string::npos);
  CHECK(dumb.find("wrote") != std::string::npos);
  const CommandResult piped = run_sentry_prof(
      {"record", "-o", directory.file("out.json"), "-d", "1", "-p", std::to_string(target.pid())});
  CHECK(piped.standard_error.find('\x1b') == std::string::npos);
  CHECK(piped.standard_error.find('\r') == std::string::npos);
  check_says(piped, "wrote");
}

TEST_CASE(
    "A command that writes to the terminal has it for itself, one that does not leaves it to us",
    "[terminal]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string spin = target_path("spin");
  const std::string loud = shown_on_terminal(
      directory, "xterm", {"--", "sh", "-c", "printf out; \"$0\" 1; printf put", spin});
  CHECK(loud.find("output") != std::string::npos);  // in one piece
  CHECK_FALSE(has_live_line(loud));
  const std::string silent = shown_on_terminal(
      directory, "xterm", {"--", "sh", "-c", "exec >/dev/null 2>&1; \"$0\" 1; true", spin});
  INFO(silent);
  CHECK(has_live_line(silent));
}

TEST_CASE("A file's name with control characters is not sent to the terminal as it is",
          "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string output = directory.file("a\x1b[31mb.json");
  const CommandResult result =
      run_sentry_prof({"record", "-F", "997", "-o", output, "--", target_path("spin"), "0.3"});
  CHECK(exists(output));
  CHECK(result.standard_error.find('\x1b') == std::string::npos);
  check_says(result, "wrote");
}
