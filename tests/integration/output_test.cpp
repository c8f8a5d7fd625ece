// Where the profile goes, and what happens where it cannot.
#include "command_line.h"
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "target_path.h"

#include <csignal>
#include <filesystem>

using namespace sentry_prof::testing;

TEST_CASE("A name that only the first file of a recording could have is refused", "[output]") {
  const TemporaryDirectory directory;
  const std::string name = std::string(250, 'n') + ".json";
  const CommandResult result =
      run_sentry_prof({"record", "-o", directory.file(name), "--", "touch", directory.file("ran")});
  CHECK(result.status() == 2);
  CHECK(contains(result.standard_error, "Choose a shorter name"));
  CHECK_FALSE(std::filesystem::exists(directory.file("ran")));
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
  CHECK(result.standard_error.find("goes on") == std::string::npos);
  CHECK(result.standard_output.empty());  // what ls found
}

TEST_CASE("Of many chunks that a full disk does not take the end tells how many", "[output]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_root());
  SKIP_IF(missing_mount_namespace());
  const TemporaryDirectory directory;
  // Smaller than any chunk: on a busy machine one may hold few samples.
  const std::string script = "mount -t tmpfs -o size=4k none '" + directory.path() + "' && '" +
                             sentry_prof_path() + "' record -F 5000 --chunk-seconds 0.3 -o '" +
                             directory.file("out.json") + "' -- '" + target_path("spin") + "' 2";
  const CommandResult result = run_command({.arguments = {"unshare", "-m", "sh", "-c", script}});
  INFO(result.standard_error);
  CHECK(result.status() == 125);
  const size_t end = result.standard_error.find(" chunks were not written. The first error: ");
  REQUIRE(end != std::string::npos);
  CHECK(result.standard_error.find(" The last: ", end) == std::string::npos);  // is the same
  CHECK(result.standard_error.find("The recording goes on.", end) == std::string::npos);
}

TEST_CASE("A chunk that cannot be written is told while the recording goes on", "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  BackgroundProcess profiler(record_command(
      directory, {.options = {"-q", "--chunk-seconds", "1"}, .pids = {target.pid()}}));
  sleep_for(0.5);
  std::filesystem::create_directory(directory.file("out.json"));  // in the file's way
  CHECK(wait_until([&] { return profiler.standard_error().find("goes on.") != std::string::npos; },
                   10));
  CHECK(profiler.standard_error().find("out.json") != std::string::npos);
  CHECK(profiler.is_running());
  profiler.send_signal(SIGINT);
  CHECK(profiler.wait().status() == 7);
}

TEST_CASE("A process that is recorded twice has one file, and that it was replaced is told",
          "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  const auto record_again = [&] {
    return run_sentry_prof({"record", "-d", "0.3", "-F", "997", "-o", directory.file("out/"), "-p",
                            std::to_string(target.pid())});
  };
  const std::string name = "spin-" + std::to_string(target.pid()) + ".v2.json";
  CHECK(record_again().standard_error.find("replaced") == std::string::npos);
  check_says(record_again(), name + " was there before and is replaced");
}

TEST_CASE("-o - writes the profile to standard output and nothing else", "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const CommandResult result = run_command(
      {.arguments = {"sh", "-c", "\"$0\" record -F 997 -o - -- \"$1\" 1 > \"$2\"",
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

TEST_CASE("Without standard streams, nor /dev/null in their place, no process of ours stays behind",
          "[output]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_root());
  SKIP_IF(missing_mount_namespace());
  const TemporaryDirectory directory;
  const std::string script = "exec 3>&1; mount -t tmpfs none /dev; '" + sentry_prof_path() +
                             "' record -o '" + directory.file("out.json") + "' -- '" +
                             target_path("spin") +
                             "' 0.3 3>&- <&- >&- 2>&-; echo status $? >&3; sleep 1; "
                             "cat /proc/[0-9]*/comm | grep -c sentry-prof >&3";
  const CommandResult result =
      run_command({.arguments = {"unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c", script}});
  CHECK(result.standard_output == "status 0\n0\n");
  CHECK(exists(directory.file("out.json")));
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
  const std::string attach = "-d 1 -o - -p " + std::to_string(target.pid());
  const CommandResult closed = record_to(">&-", attach);
  CHECK(closed.status() == 7);
  check_says(closed, "standard output is closed");
  const CommandResult full = record_to(">/dev/full", attach);
  CHECK(full.status() == 7);
  check_says(full, "No space left");
  CHECK(record_to(">&-", "-o - -- \"$1\" 1").status() == 125);
  CHECK(record_to(">/dev/full", "-o - -- \"$1\" 1").status() == 125);
  const std::string summary = "-o " + directory.file("out.json") + " --summary - -- \"$1\" 1";
  CHECK(record_to(">&-", summary).status() == 125);
}

TEST_CASE("An output that ends in '/' is a directory, and is made if it is not there", "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess target({.arguments = {target_path("spin"), "60"}});
  const std::string pid = std::to_string(target.pid());
  const std::string name = "spin-" + pid + ".v2.json";
  const auto record_into = [&](const std::string& output) {
    return run_sentry_prof({"record", "-d", "1", "-F", "997", "-p", pid, "-o", output}).status();
  };
  CHECK(record_into(directory.file("profiles/")) == 0);
  CHECK(exists(directory.file("profiles/" + name)));
  CHECK(record_into(directory.path()) == 0);  // one that is there needs no '/'
  CHECK(exists(directory.file(name)));
  CHECK(record_into(directory.file("no/profiles/")) == 7);
  CHECK(record_into("") == 2);
}

TEST_CASE("Two outputs in one file are refused before anything runs", "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string output = directory.file("out.json");
  const std::string trace = directory.file("the-command-ran");
  const auto refuses = [&](const std::string& option, const std::string& file) {
    const CommandResult result =
        run_sentry_prof({"record", "-o", output, option, file, "--", "touch", trace});
    CHECK(result.status() == 2);
    check_says(result, "is the name of a chunk's file, too");
  };
  refuses("--raw-log", output);
  refuses("--summary", directory.file("./out.json"));
  refuses("--summary", directory.file("./out.2.json"));
  CHECK_FALSE(exists(trace));
}

TEST_CASE("The program that is recorded is not overwritten", "[output]") {
  const TemporaryDirectory directory;
  const std::string program = directory.file("true");
  std::filesystem::copy_file("/bin/true", program);
  const auto size = std::filesystem::file_size(program);
  const CommandResult result = run_sentry_prof({"record", "-o", program, "--", program});
  CHECK(result.status() != 0);
  CHECK(result.standard_error.find("is the program that is to be recorded") != std::string::npos);
  CHECK(std::filesystem::file_size(program) == size);
}

TEST_CASE("Nor is that of a process that runs", "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string program = directory.file("sleep");
  std::filesystem::copy_file("/bin/sleep", program);
  const auto size = std::filesystem::file_size(program);
  const BackgroundProcess target({.arguments = {program, "60"}});
  const CommandResult result =
      run_sentry_prof({"record", "-d", "0.3", "-o", program, "-p", std::to_string(target.pid())});
  CHECK(result.status() == 2);
  check_says(result, "is the program that is to be recorded");
  CHECK(std::filesystem::file_size(program) == size);
}

TEST_CASE("A program that is looked for in PATH is another file than the output of its name",
          "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  for (int i = 0; i < 2; ++i) {
    const CommandResult result =
        run_command({.arguments = {sentry_prof_path(), "record", "-F", "997", "-o", "sort", "--",
                                   "sort", "--version"},
                     .directory = directory.path()});
    CHECK(result.status() == 0);
    CHECK(result.standard_error.find("is the program") == std::string::npos);
  }
}

TEST_CASE("-q says why nothing was written", "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  BackgroundProcess idle({.arguments = {"sleep", "60"}});
  const CommandResult result =
      run_sentry_prof({"record", "-q", "-d", "0.3", "-o", directory.file("out.json"), "-p",
                       std::to_string(idle.pid())});
  CHECK(result.status() == 1);
  check_says(result, "nothing was written");
}

TEST_CASE("Help, or what holds of options, that cannot be written is an error", "[output]") {
  for (const char* arguments : {"--help", "record --print-config"}) {
    const std::string script = std::string("\"$0\" ") + arguments + " > /dev/full";
    const CommandResult result =
        run_command({.arguments = {"sh", "-c", script, sentry_prof_path()}});
    CHECK(result.status() == 7);
    check_says(result, "standard output");
  }
}

TEST_CASE("A directory made for the output goes again if nothing was recorded", "[output]") {
  SKIP_IF(missing_perf());
  const TemporaryDirectory directory;
  const std::string made = directory.file("new/");
  CHECK(run_sentry_prof({"record", "-o", made, "--", "/no/such/command"}).status() == 127);
  CHECK_FALSE(exists(made));
  CHECK(run_sentry_prof({"record", "-o", made, "-p", "999999999"}).status() == 1);
  CHECK_FALSE(exists(made));
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
