// Options from a file, and --print-config, as the users of record and upload call them.
#include "process.h"
#include "recording.h"
#include "support/catch2.h"
#include "temporary_directory.h"
#include "text_file.h"
#include "upload_runs.h"

#include <fstream>
#include <string>

using namespace sentry_prof::testing;

TEST_CASE("A config file gives options, the command line wins, and --print-config masks",
          "[upload]") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/c.toml")
      << "max-retries = 3\nfrequency = 97\n[upload]\ncompress = \"zstd\"\ndsn = \"https://" << kKey
      << "@example.invalid/42\"\n[record]\nfrequency = 997\n";
  const auto shown = run_sentry_prof(
      {"upload", "--config", "c.toml", "--print-config", "--max-retries", "1"}, directory);
  CHECK(shown.status() == 0);
  CHECK(contains(shown.standard_output, "https://***@example.invalid/42"));
  CHECK(contains(shown.standard_output, "zstd                           # c.toml"));
  CHECK(contains(shown.standard_output, "1                              # command line"));
  CHECK(contains(shown.standard_output,
                 "spool              (none)                         # default"));
  CHECK(contains(shown.standard_output,
                 "dry-run            false                          # default"));
  std::ofstream(directory.path() + "/wrong.toml") << "nonsense = 1\n";
  const auto wrong = run_sentry_prof({"record", "--config", "wrong.toml"}, directory);
  CHECK(wrong.status() == 2);
  CHECK(contains(wrong.standard_error, "no option 'nonsense'"));
}

TEST_CASE("The section of a config file wins over what stands before any", "[upload]") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/c.toml")
      << "max-retries = 3\nenvironment = my env\n[record]\nmax-retries = 4\nrelease = \"v1#2\"\n"
         "pid = [12, 34]\n";
  const auto shown = run_sentry_prof({"record", "--config", "c.toml", "--print-config"}, directory);
  CHECK(shown.status() == 0);
  for (const char* line : {"max-retries        4        ", "environment        my env   ",
                           "release            v1#2     ", "pid                12,34    "}) {
    INFO(line);
    CHECK(contains(shown.standard_output, line));
  }
}

TEST_CASE("What is wrong in a config file is told with its name", "[upload]") {
  struct Case {
    const char* text;
    const char* told;
  };
  for (const Case& wrong :
       {Case{"compress = none\ncompress = gzip", "--config c.toml:2: 'compress' has a value"},
        Case{"nonsense = 1", "--config c.toml:1: there is no option 'nonsense'"},
        Case{"\nmax-retries = [1, 2]", "--config c.toml:2: 'max-retries' has one value"},
        Case{"max-retries = many", "--config c.toml: --max-retries: "},
        Case{"[upload]\ndsn = bogus", "--config c.toml: --dsn: the DSN is not valid"},
        Case{"[upload]\ndsn-file = none", "--config c.toml: --dsn-file: none"}}) {
    const TemporaryDirectory directory;
    std::ofstream(directory.path() + "/c.toml") << wrong.text << '\n';
    std::ofstream(directory.path() + "/x.json") << "{}";
    const auto result = run_sentry_prof({"upload", "--config", "c.toml", "x.json"}, directory);
    INFO(result.standard_error);
    CHECK(result.status() == 2);
    CHECK(contains(result.standard_error, wrong.told));
  }
}

TEST_CASE("A value that is empty is not the same as none", "[upload]") {
  const TemporaryDirectory directory;
  for (const std::string name :
       {"dsn", "dsn-file", "spool", "ca-file", "transaction-file", "link-transaction", "config"}) {
    INFO(name);
    const auto given = run_sentry_prof({"upload", "--" + name + "=", golden("v2")}, directory);
    CHECK(given.status() == 2);
    CHECK(contains(given.standard_error, "--" + name + ": must not be empty"));
    if (name == "config") continue;
    std::ofstream(directory.path() + "/c.toml") << "[upload]\n" << name << " = \"\"\n";
    const auto read = run_sentry_prof({"upload", "--config", "c.toml", golden("v2")}, directory);
    CHECK(read.status() == 2);
    CHECK(contains(read.standard_error, "--config c.toml: --" + name + ": must not be empty"));
  }
}

TEST_CASE("A config file of a sender serves a dry run, too", "[upload]") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/c.toml") << "[upload]\nspool = kept\ncompress = zstd\n";
  CHECK(run_sentry_prof({"upload", "--config", "c.toml", "--dry-run", "-o", "out", golden("v2")},
                        directory)
            .status() == 0);
}

TEST_CASE("What is for one recording is no option of a config file", "[upload]") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/c.toml") << "[record]\nraw-log = log\n";
  const auto result =
      run_sentry_prof({"record", "--config", "c.toml", "--print-config"}, directory);
  CHECK(result.status() == 2);
  CHECK(contains(result.standard_error,
                 "--config c.toml:2: 'raw-log' may only be given on the command line"));
}

TEST_CASE("-q on the command line beats verbose in a config file", "[upload]") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/c.toml") << "verbose = true\n";
  const auto shown =
      run_sentry_prof({"upload", "--config", "c.toml", "-q", "--print-config"}, directory);
  CHECK(contains(shown.standard_output, "verbose            false "));
}

TEST_CASE("What only --upload uses is wrong usage without it, not so in a config file",
          "[upload]") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/c.toml") << "spool = \"kept\"\n[record]\nmax-retries = 3\n";
  const auto shown =
      run_sentry_prof({"record", "--config", "c.toml", "--print-config", "--", "true"}, directory);
  CHECK(shown.status() == 0);
  const auto refused = run_sentry_prof(
      {"record", "--config", "c.toml", "--max-retries", "5", "--", "true"}, directory);  // default
  CHECK(refused.status() == 2);
  CHECK(contains(refused.standard_error, "--max-retries is for --upload"));
}

TEST_CASE("What a config file says to nobody is told", "[upload]") {
  const TemporaryDirectory directory;
  for (const char* section : {"[uplaod]", "[upload.x]"}) {
    std::ofstream(directory.path() + "/c.toml") << section << "\nmax-retries = 3\n";
    const auto result = run_sentry_prof({"upload", "--config", "c.toml", "x.json"}, directory);
    CHECK(result.status() == 2);
    CHECK(contains(result.standard_error, "there is no section " + std::string(section)));
  }
}

TEST_CASE("A DSN that was given to the wrong option is masked, and no file is not no DSN",
          "[upload]") {
  const TemporaryDirectory directory;
  const auto shown = run_sentry_prof(
      {"upload", "--print-config", "--dsn-file", "https://" + kKey + "@example.invalid/42"},
      directory);
  CHECK(contains(shown.standard_output, "https://***@example.invalid/42"));
  CHECK(contains(shown.standard_output, "dsn                *** (--dsn-file: "));
}

TEST_CASE("An empty value behind an = is a value, on the command line and in a file", "[upload]") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/c.toml") << "environment = \"\"\n";
  const auto shown =
      run_sentry_prof({"upload", "--compress=", "--config", "c.toml", "--print-config"}, directory);
  CHECK(shown.status() == 2);  // of --compress: '' is no compression, --config is
  CHECK(contains(shown.standard_error, "--compress"));
  const auto accepted =
      run_sentry_prof({"record", "--release=", "--config", "c.toml", "--print-config"}, directory);
  CHECK(accepted.status() == 0);
  CHECK(contains(accepted.standard_output, "# c.toml"));
}

TEST_CASE("A DSN file on the command line beats the DSN of the config file", "[upload]") {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() + "/c.toml") << "dsn = \"https://key@config.example/1\"\n";
  std::ofstream(directory.path() + "/key") << "https://key@line.example/2\n";
  const auto shown = run_sentry_prof(
      {"upload", "--config", "c.toml", "--dsn-file", "key", "--print-config"}, directory);
  CHECK(contains(shown.standard_output, "https://***@line.example/2"));
}
