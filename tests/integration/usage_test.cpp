// What a user meets who does it wrong.
#include "command_line.h"
#include "prerequisites.h"
#include "recording.h"
#include "support/address_sanitizer.h"
#include "support/catch2.h"
#include "target_path.h"
#include "temporary_directory.h"
#include "text_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace sentry_prof::testing;

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
  CHECK(run_sentry_prof({"record", "--replay", ""}).status() == 2);
  CHECK(run_sentry_prof({"record", "--raw-log", "", "--", "true"}).status() == 2);
  CHECK(run_sentry_prof({"record", "--frequency", "0x10", "--", "true"}).status() == 2);
}

TEST_CASE("A wrong argument is named, in words", "[usage]") {
  struct Case {
    std::vector<std::string> arguments;
    const char* says;
  };
  const Case cases[] = {
      {{"record", "-p"}, "--pid: its value is missing"},
      {{"record", "-d", "1", "-d", "2", "-p", "1"}, "--duration: is given more than once"},
      {{"validate", "--explain"}, "--explain: its value is missing"},
      {{"record", "--upload=maybe", "-p", "1"}, "--upload = maybe is neither true nor false"},
      {{"upload", "--max-retries", "x", "f"}, "'x' is not a whole number from 0 to 1000"},
      {{"record", "--chunk-seconds", "100", "-p", "1"}, "'100' is not a number from 0.1 to 66"},
      {{"record", "--stack-bytes", "8193", "-p", "1"}, "'auto' or a multiple of 8 from 1024 to"},
      {{"record", "-o", "-", "--summary", "-", "--", "true"},
       "--output and --summary cannot both go to standard output"},
      {{"--verison"}, "there is no option '--verison' before a command"},
      {{"--foo", "record", "-p", "1"}, "there is no option '--foo' before a command"},
      {{"recrd"}, "there is no command 'recrd'"},
  };
  for (const Case& one : cases) {
    const CommandResult result = run_sentry_prof(one.arguments);
    CHECK(result.status() == 2);
    check_says(result, one.says);
  }
}

TEST_CASE("What would be ignored is wrong usage", "[usage]") {
  const std::vector<std::string> explain{"validate", "--explain", "all"};
  const std::vector<std::string> dry_run{"upload", "--dry-run", "-o", "envelope", "profile.json"};
  for (const auto& [arguments, more] :
       std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>{
           {explain, {"--fix"}},
           {explain, {"profile.json"}},
           {explain, {"--format", "json"}},
           {explain, {"-o", "out.json"}},
           {dry_run, {"--spool", "kept"}},
           {dry_run, {"--max-retries", "1"}},
           {dry_run, {"--ca-file", "ca.pem"}},
           {dry_run, {"--compress", "zstd"}}}) {
    INFO(more.front());
    std::vector<std::string> all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    const CommandResult result = run_sentry_prof(all);
    CHECK(result.status() == 2);
    check_says(result, arguments == dry_run ? "is for sending" : "stands alone");
  }
}

TEST_CASE("What only --upload uses is wrong usage without it", "[usage]") {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--spool", "kept"},
                                                  {"--max-retries", "1"},
                                                  {"--compress", "zstd"},
                                                  {"--ca-file", "ca.pem"},
                                                  {"--keep-image-type"}}) {
    std::vector<std::string> arguments{"record"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "true"});
    const CommandResult result = run_sentry_prof(arguments);
    CHECK(result.status() == 2);
    check_says(result, "for --upload");
  }
}

TEST_CASE("Quiet and verbose at once is wrong usage", "[usage]") {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"record", "-q", "-v", "--", "true"},
        {"upload", "-v", "-q", "x.json"},
        {"convert", "-q", "-v", "perf.data", "-o", "x.json"}}) {
    const CommandResult result = run_sentry_prof(arguments);
    CHECK(result.status() == 2);
    check_says(result, "--quiet and --verbose exclude each other");
  }
}

TEST_CASE("What is no process id is told with the form of several", "[usage]") {
  for (const char* pids : {"12 34", "12, 34", "none", "0", "-1", "99999999999"}) {
    const CommandResult result = run_sentry_prof({"record", "-p", pids});
    CHECK(result.status() == 2);
    check_says(result, "is no process id (several: -p 12,34)");
  }
}

TEST_CASE("A transaction's name without use is told", "[usage]") {
  const TemporaryDirectory directory;
  const std::string warning = "warning: --transaction";
  for (const char* format : {"v1", "v2"}) {
    const CommandResult result =
        run_sentry_prof({"record", "--transaction", "x", "--format", format, "-o",
                         directory.file("x.json"), "--", "true"});
    CHECK(contains(result.standard_error, warning) == (format == std::string("v2")));
  }
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
  CHECK(run_sentry_prof({"help", "record"}).standard_output == help.standard_output);
  CHECK(contains(run_sentry_prof({"help"}).standard_output, "convert"));
  CHECK(run_sentry_prof({"help", "nothing"}).status() == 2);
  CHECK(run_sentry_prof({"--version"}).status() == 0);
  CHECK(run_sentry_prof({"-V"}).status() == 0);
}

TEST_CASE("A process that does not exist is named", "[targets]") {
  BackgroundProcess ended({.arguments = {"true"}});
  ended.wait();
  const std::string pid = std::to_string(ended.pid());
  const CommandResult result = run_sentry_prof({"record", "-p", pid, "-o", "-"});
  CHECK(result.status() == 1);
  check_says(result, pid);
}

TEST_CASE("Installed setuid it does nothing", "[usage]") {
  SKIP_IF(missing_root());
  const TemporaryDirectory directory;
  struct statvfs mount {};
  REQUIRE(::statvfs(directory.path().c_str(), &mount) == 0);
  if ((mount.f_flag & ST_NOSUID) != 0) return note_optional_skip("temporary files are nosuid");
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return note_optional_skip("no new privileges");
  // Which fails in setuid programs, and reads no options there.
  if (kAddressSanitizer) return note_optional_skip("LeakSanitizer decides the exit status");
  const std::string program = directory.file("sentry-prof");
  std::filesystem::copy_file(sentry_prof_path(), program);
  constexpr uid_t kOther = 65534;
  REQUIRE(::chown(program.c_str(), kOther, static_cast<gid_t>(-1)) == 0);
  REQUIRE(::chmod(program.c_str(), 04755) == 0);
  // A process that is not to be looked at is not searched for leaks either: that would be the
  // failure.
  const CommandResult result = run_command(
      {.arguments = {program, "--version"}, .environment = {{"ASAN_OPTIONS", "detect_leaks=0"}}});
  CHECK(result.status() == 125);
  check_says(result, "must not be installed setuid");
  CHECK(result.standard_output.empty());
}

TEST_CASE("A process id with a zero in front is a decimal number", "[targets]") {
  const CommandResult result = run_sentry_prof({"record", "-p", "01000000000", "-o", "-"});
  CHECK(result.status() == 1);
  check_says(result, "1000000000");
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

  const std::string script = directory.file("script");
  std::ofstream(script) << "#!/no/such/interpreter\n";
  ::chmod(script.c_str(), 0700);
  const CommandResult no_interpreter = run_sentry_prof({"record", "-o", output, "--", script});
  CHECK(no_interpreter.status() == 126);
  check_says(no_interpreter, "interpreter");
  CHECK(files_in(directory) == 2);  // only "plain" and "script"
}

TEST_CASE("The command's own end is passed through", "[launch]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  CHECK(record(directory, {.command = {"sh", "-c", "exit 3"}}).result.status() == 3);
  CHECK(record(directory, {.command = {"sh", "-c", "kill -TERM $$"}}).result.status() == 128 + 15);
  CHECK(record(directory, {.command = {"sh", "-c", "kill -SEGV $$"}}).result.status() == 128 + 11);
}

TEST_CASE("A process that goes on when the command has ended is told of", "[launch]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string pid_path = directory.file("pid");
  const CommandResult result = run_command(
      {.arguments = {sentry_prof_path(), "record", "-o", directory.file("out.json"), "--", "sh",
                     "-c", R"(sleep 100 >/dev/null 2>&1 & echo $! >"$0")", pid_path}});
  const std::string pid = contents_of(pid_path);
  ::kill(std::stoi(pid), SIGKILL);
  CHECK(result.status() == 0);
  check_says(result, "goes on: sentry-prof record -p " + pid);
}

TEST_CASE(
    "As a container's first process no orphan is left a zombie, and the command's end is passed",
    "[launch]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_mount_namespace());
  const TemporaryDirectory directory;
  const std::string spin = "'" + target_path("spin") + "'";
  // Each subshell leaves its child to process 1.
  const std::string script = "for i in 1 2 3; do (sleep 0.1 & (" + spin + " 0.2 &)); done; " +
                             spin + " 1; grep -l '^State:.Z' /proc/[0-9]*/status | wc -l; exit 7";
  Command command{.arguments = {"unshare", "--pid", "--fork", "--mount-proc"}};
  const Command record = record_command(directory, {.command = {"sh", "-c", script}});
  std::ranges::copy(record.arguments, std::back_inserter(command.arguments));
  const CommandResult result = run_command(command);
  CAPTURE(result.standard_error);
  CHECK(result.status() == 7);
  CHECK(result.standard_output == "0\n");
  CHECK_FALSE(contains(result.standard_error, "goes on"));
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
