// `sentry-prof validate` as its users call it: kinds of files, exit codes, both outputs. What the
// rules find is tested in tests/unit/sentry.
#include "command_line.h"
#include "process.h"
#include "recording.h"
#include "support/address_sanitizer.h"
#include "support/catch2.h"
#include "target_path.h"
#include "temporary_directory.h"
#include "text_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <pty.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sentry_prof::testing;

namespace {

// 50 MiB of text and what stands around it; the address space, so that nothing can hide.
// AddressSanitizer reserves terabytes of it: there the verdicts alone are checked.
const std::string kLimitMemory = kAddressSanitizer ? "" : "ulimit -v 400000; ";

const std::string kGolden = "golden_v2_native.json";

std::string data_path(const std::string& name) {
  return std::string(SENTRY_PROF_TEST_DATA) + "/" + name;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

CommandResult validate(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {sentry_prof_path(), "validate"});
  return run_command({.arguments = std::move(arguments), .time_out_s = 60});
}

// `script` may use "$V" for `sentry-prof validate`.
CommandResult shell(const std::string& script, const TemporaryDirectory& directory) {
  return run_command({.arguments = {"bash", "-c", script},
                      .environment = {{"V", sentry_prof_path() + " validate"},
                                      {"GOLDEN", data_path(kGolden)},
                                      {"DIR", directory.path()}},
                      .directory = directory.path(),
                      .time_out_s = 60});
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("A valid chunk: exit status 0, and what it holds", "[validate]") {
  const CommandResult result = validate({data_path(kGolden)});
  INFO(result.standard_output);
  CHECK(result.status() == 0);
  CHECK(contains(result.standard_output, kGolden + ": valid V2 chunk"));
  CHECK(contains(result.standard_output, "Sentry accepts it from sentry-prof upload"));
  for (const char* head : {"  samples ", "  frames ", "  images ", "  dropped "}) {
    CHECK(contains(result.standard_output, head));
  }
}

TEST_CASE("An invalid profile: each problem with its place, rule and remedy, and the reason",
          "[validate]") {
  const TemporaryDirectory directory;
  write_text(directory.file("bad.json"), "{\n  \"version\": \"2\",\n  \"platform\": 5\n}\n");
  const CommandResult result = validate({directory.file("bad.json")});
  INFO(result.standard_output);
  CHECK(result.status() == 1);
  CHECK(contains(result.standard_output, "bad.json:3:15: error: "));
  CHECK(contains(result.standard_output, "    at /platform\n"));
  CHECK(contains(result.standard_output, "    server: "));
  CHECK(contains(result.standard_output, "    mend: "));
  CHECK(contains(result.standard_output, "Sentry refuses it: profiling_invalid_json"));
  CHECK(contains(result.standard_output, "--explain "));
}

TEST_CASE("Too few samples: the reason's name, and what to do next", "[validate]") {
  const TemporaryDirectory directory;
  std::string text = read_text(data_path(kGolden));
  const size_t samples = text.find("\"samples\":[");
  REQUIRE(samples != std::string::npos);
  const size_t begin = text.find('[', samples);
  text.replace(begin, text.find(']', begin) - begin + 1, "[]");
  write_text(directory.file("few.json"), text);
  const CommandResult result = validate({directory.file("few.json")});
  INFO(result.standard_output);
  CHECK(result.status() == 1);
  CHECK(contains(result.standard_output, "Sentry refuses it: profiling_not_enough_samples"));
  CHECK(contains(result.standard_output, "    mend: "));
  const CommandResult told = validate({"--explain", "profiling_not_enough_samples"});
  CHECK(told.status() == 0);
  CHECK(contains(told.standard_output, "enough-samples"));
}

TEST_CASE("Of several files all are judged, and the worst exit status wins", "[validate]") {
  const TemporaryDirectory directory;
  write_text(directory.file("bad.json"), "{}");
  const std::string good = data_path(kGolden);
  const CommandResult result = validate({good, directory.file("bad.json"), good});
  CHECK(result.status() == 1);
  CHECK(contains(result.standard_output, "3 files: 2 valid, 1 invalid\n"));
  const CommandResult unread =
      validate({directory.file("missing"), directory.file("bad.json"), good});
  CHECK(unread.status() == 7);
  CHECK(contains(unread.standard_error, "missing: ENOENT"));
  CHECK(contains(unread.standard_output, "3 files: 1 valid, 1 invalid, 1 could not be read\n"));
}

TEST_CASE("Compressed files are told by their content, whatever they are called", "[validate]") {
  const TemporaryDirectory directory;
  const CommandResult result = shell(
      "gzip -c $GOLDEN > a.json; zstd -q -c $GOLDEN > b.json; cp $GOLDEN c.gz; "
      "head -c 500 $GOLDEN | gzip > d; tail -c +501 $GOLDEN | gzip >> d; $V a.json b.json c.gz d; "
      "gzip -c $GOLDEN | $V -; $V - < b.json; $V <(cat a.json)",
      directory);
  INFO(result.standard_output << result.standard_error);
  CHECK(result.status() == 0);
  CHECK(occurrences(result.standard_output, ": valid V2 chunk") == 7);
}

TEST_CASE("Damaged compressed data is said to be so", "[validate]") {
  const TemporaryDirectory directory;
  const auto check = [&](const std::string& script, const std::string& says) {
    const CommandResult result = shell(script, directory);
    INFO(script << result.standard_output << result.standard_error);
    CHECK(result.status() == 1);
    CHECK(contains(result.standard_error, says));
  };
  check("gzip -c $GOLDEN | head -c 300 > cut; $V cut",
        "cut: the gzip data is cut off before its end");
  check("zstd -q -c $GOLDEN | head -c 300 | $V -", "standard input: the zstd data is cut off");
  check("(gzip -c $GOLDEN; echo more) > tail; $V tail", "tail: there are bytes behind the end");
  check("gzip -c $GOLDEN | gzip > twice; $V twice", "twice: is compressed twice");
  const CommandResult json = shell("$V --format json cut /no/such/file", directory);
  CHECK(occurrences(json.standard_output, R"("error_kind":"damaged")") == 1);
  CHECK(occurrences(json.standard_output, R"("error_kind":"unreadable")") == 1);
}

TEST_CASE("Bombs and huge files are refused by their size, with little memory", "[validate]") {
  const TemporaryDirectory directory;
  const auto check = [&](const std::string& script) {
    const CommandResult result = shell(kLimitMemory + script, directory);
    INFO(script << result.standard_output << result.standard_error);
    CHECK(result.status() == 1);
    CHECK(contains(result.standard_output, "Sentry refuses it: profiling_exceed_size_limit"));
  };
  check("head -c 1G /dev/zero | gzip -1 > bomb; $V bomb");
  check("head -c 1G /dev/zero | zstd -q -1 > bomb; $V bomb");
  check("truncate -s 1G huge; $V huge");
  check("$V - < huge");
  check("$V /dev/zero");
  check("cat /dev/zero | $V -");
}

TEST_CASE("A file above the server's limit is judged where that is not to count", "[validate]") {
  const TemporaryDirectory directory;
  const CommandResult result = shell(
      "(cat $GOLDEN; head -c 55M /dev/zero | tr '\\0' ' ') > large; $V large; "
      "$V --no-size-limit large",
      directory);
  INFO(result.standard_output << result.standard_error);
  CHECK(result.status() == 0);
  CHECK(occurrences(result.standard_output, "profiling_exceed_size_limit") == 1);
  CHECK(occurrences(result.standard_output, "large: valid V2 chunk") == 1);
}

TEST_CASE("Files of every other kind", "[validate]") {
  const TemporaryDirectory directory;
  write_text(directory.file("empty"), "");
  CHECK(validate({directory.file("empty")}).status() == 1);
  CHECK(validate({"/dev/null"}).status() == 1);
  const CommandResult folder = validate({directory.path()});
  CHECK(folder.status() == 7);
  CHECK(contains(folder.standard_error, "is a directory"));
  REQUIRE(::mkfifo(directory.file("fifo").c_str(), 0600) == 0);
  const CommandResult fifo = validate({directory.file("fifo")});
  CHECK(fifo.status() == 7);
  CHECK(contains(fifo.standard_error, "nobody writes to"));
  const CommandResult fed = shell("cat $GOLDEN > fifo & $V fifo", directory);
  CHECK(fed.status() == 0);
}

TEST_CASE("Wrong usage is told", "[validate]") {
  const TemporaryDirectory directory;
  CHECK(validate({}).status() == 2);
  CHECK(validate({"--against", "nobody", "file"}).status() == 2);
  CHECK(validate({"--no-such-option", "file"}).status() == 2);
  CHECK(validate({"-", "-"}).status() == 2);
  const CommandResult rule = validate({"--explain", "enough-sampels"});
  CHECK(rule.status() == 2);
  CHECK(contains(rule.standard_error, "Nearest: enough-samples,"));
}

TEST_CASE("Names of files and what they hold cannot play with a terminal", "[validate]") {
  const TemporaryDirectory directory;
  const std::string name = directory.file("a\x1b[31m\nb.json");
  write_text(
      name, "{\"version\":\"2\",\"profile\":{\"thread_metadata\":{\"\\u001b[31m\":{\"name\":5}}}}");
  const CommandResult result = validate({name});
  CHECK(result.status() == 1);
  CHECK_FALSE(contains(result.standard_output, "\x1b"));
  CHECK_FALSE(contains(result.standard_output, "\nb.json"));
}

TEST_CASE("Colours are for terminals, and not with NO_COLOR", "[validate]") {
  const TemporaryDirectory directory;
  const std::string on_terminal = "script -qec \"$V $GOLDEN\" /dev/null";
  CHECK(contains(
      shell("export TERM=xterm; unset NO_COLOR; " + on_terminal, directory).standard_output,
      "\x1b[1"));
  CHECK_FALSE(contains(
      shell("export TERM=xterm NO_COLOR=1; " + on_terminal, directory).standard_output, "\x1b"));
  CHECK_FALSE(contains(shell("$V $GOLDEN", directory).standard_output, "\x1b"));
}

TEST_CASE("A full disk under the report is an error", "[validate]") {
  const TemporaryDirectory directory;
  const CommandResult result = shell("$V $GOLDEN > /dev/full", directory);
  CHECK(result.status() == 7);
  CHECK(contains(result.standard_error, "No space left"));
}

TEST_CASE("--explain all prints every rule", "[validate]") {
  const CommandResult result = validate({"--explain", "all"});
  CHECK(result.status() == 0);
  CHECK(occurrences(result.standard_output, "\n  source: ") > 50);
}

TEST_CASE("--fix writes a mended file, says what it changed and judges that", "[validate]") {
  const TemporaryDirectory directory;
  const std::string golden = read_text(data_path(kGolden));
  std::string broken = golden;
  broken.replace(broken.find("\"version\":\"2\""), 13, "\"version\":2");
  write_text(directory.path() + "/broken.json", broken);

  const auto fixed = shell("$V --fix -o out.json broken.json", directory);
  INFO(fixed.standard_output << fixed.standard_error);
  CHECK(fixed.status() == 0);
  CHECK(contains(fixed.standard_output, "broken.json: fixed: number put in quotes\n"));
  CHECK(contains(fixed.standard_output, "out.json: valid"));
  CHECK(read_text(directory.path() + "/out.json") == golden);

  const auto piped = shell("gzip -c broken.json | $V --fix -o - -", directory);
  CHECK(piped.status() == 0);
  CHECK(piped.standard_output == golden);
  CHECK(contains(piped.standard_error, "<stdin>: fixed: number put in quotes\n"));

  const auto again = shell("$V --fix -o same.json out.json", directory);
  CHECK(contains(again.standard_output, "out.json: nothing to fix, the same bytes were written"));
  CHECK(read_text(directory.path() + "/same.json") == golden);
}

TEST_CASE("--fix writes nothing for what it cannot mend at all", "[validate]") {
  const TemporaryDirectory directory;
  write_text(directory.path() + "/cut.json", R"({"version":"2",)");
  write_text(directory.path() + "/envelope", R"({"event_id":"9ec79c33ec9942ab8353589fcb2e04dc"})"
                                             "\n{\"type\":\"profile\",\"length\":2}\n{}\n");
  for (const char* name : {"cut.json", "envelope"}) {
    const auto result = shell(std::string("$V --fix -o out.json ") + name, directory);
    CHECK(result.status() == 1);
    CHECK(contains(result.standard_error, std::string(name) + " was not fixed"));
    CHECK_FALSE(std::filesystem::exists(directory.path() + "/out.json"));
  }
}

TEST_CASE("--fix past the limit of file sizes is an error, and leaves no file behind",
          "[validate]") {
  const TemporaryDirectory directory;
  const auto result = shell("ulimit -f 1; $V --fix -o out.json $GOLDEN", directory);
  INFO(result.standard_output << result.standard_error);
  CHECK(result.status() == 7);
  CHECK(contains(result.standard_error, "out.json: "));
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("--fix wants one FILE, and -o", "[validate]") {
  const TemporaryDirectory directory;
  for (const char* script : {"$V --fix $GOLDEN", "$V -o out.json $GOLDEN", "$V --fix -o out.json",
                             "$V --fix -o out.json $GOLDEN $GOLDEN"}) {
    INFO(script);
    CHECK(shell(script, directory).status() == 2);
  }
  CHECK(shell("$V --fix -o missing/out.json $GOLDEN", directory).status() == 7);
  CHECK(shell("$V --fix -o out.json missing.json", directory).status() == 7);
}
