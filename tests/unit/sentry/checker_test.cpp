// The checker itself: every rule by a document that breaks it and one that just does not.
#include "support/catch2.h"
#include "support/sentry_checker.h"
#include "support/skips.h"
#include "unit/sentry/test_files.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

using namespace sentry_prof::testing;

namespace {

// A golden file with one change.
struct Change {
  std::string from, to;
};

std::string golden(ProfileKind kind) {
  return read_test_file(kind == ProfileKind::V1 ? "sentry/golden_v1.json"
                                                : "sentry/golden_v2.json");
}

std::string changed(std::string text, const Change& change) {
  const size_t at = text.find(change.from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, change.from.size(), change.to);
}

CheckReport check(ProfileKind kind, const Change& change) {
  return check_sentry_profile(changed(golden(kind), change), kind);
}

bool has_rule(const CheckReport& report, const std::string& rule) {
  return std::any_of(report.problems.begin(), report.problems.end(), [&](const std::string& p) {
    return p.compare(0, rule.size() + 1, rule + " ") == 0;
  });
}

struct Case {
  ProfileKind kind;
  Change change;
  std::string rule;    // of a problem that must be reported; empty for none at all
  std::string reason;  // the server's; empty if it accepts
};

constexpr auto V1 = ProfileKind::V1;
constexpr auto V2 = ProfileKind::V2;
const std::string kJson = "profiling_invalid_json";

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, separator);) fields.push_back(field);
  return fields;
}

}  // namespace

TEST_CASE("The checker finds nothing in the golden files") {
  for (ProfileKind kind : {V1, V2}) {
    const CheckReport report = check_sentry_profile(golden(kind), kind);
    CHECK(report.is_accepted);
    CHECK(report.problems == std::vector<std::string>());
    CHECK(kind_of(golden(kind)) == kind);
  }
}

TEST_CASE("The server's rules refuse what breaks them, and only that") {
  const std::string first_v2 = R"({"timestamp":1768478400.000000,"thread_id":"4242","stack_id":1})";
  const std::string last_v2 = R"({"timestamp":1768478401.999999,)";
  // One case a line.
  // clang-format off
  const auto c = GENERATE_COPY(values<Case>({
      // A: text
      {V2, {"\n", ""}, "P9", ""},
      {V2, {"\n", "garbage"}, "P9", ""},
      {V2, {"{\"version\"", "\xef\xbb\xbf{\"version\""}, "A1", kJson},
      {V2, {"{\"version\"", "[{\"version\""}, "A1", kJson},
      {V2, {"\"release\"", "\"extra\":" + std::string(127, '[') + std::string(127, ']') + ",\"release\""}, "", ""},
      {V2, {"\"release\"", "\"extra\":" + std::string(128, '[') + std::string(128, ']') + ",\"release\""}, "A1", kJson},
      {V2, {"\"release\"", "\"release\":\"twice\",\"release\""}, "C", kJson},
      {V2, {"\"release\"", "\"nothing\":null,\"release\""}, "P8", ""},
      // A3, A4, A5: values
      {V1, {"41fed0925670468bb0457f61a7468801", "41fed092-5670-468b-b045-7f61a7468801"}, "P1", ""},
      {V1, {"41fed0925670468bb0457f61a7468801", "{41fed092-5670-468b-b045-7f61a7468801}"}, "P1", ""},
      {V1, {"41fed0925670468bb0457f61a7468801", "41fed0925670468bb0457f61a746880"}, "B1", kJson},
      {V1, {"41fed0925670468bb0457f61a7468801", "41fed0925670168bb0457f61a7468801"}, "P1", ""},
      {V2, {"\"0x55d0c0a01234\"", "\"94355560141364\""}, "P5", ""},
      {V2, {"\"0x55d0c0a01234\"", "\"55d0c0a01234\""}, "F1", kJson},
      {V2, {"\"0x55d0c0a01234\"", "\"0x155d0c0a0123400000\""}, "F1", kJson},
      {V2, {"\"0x55d0c0a01234\"", "1234"}, "F1", kJson},
      {V1, {"\"9901999\"", "9901999"}, "", ""},
      {V1, {"\"9901999\"", "\" 9901999\""}, "B15", kJson},
      {V1, {"\"9901999\"", "9901999.0"}, "B15", kJson},
      {V1, {"\"9901999\"", "-1"}, "B15", kJson},
      {V1, {"\"9901999\"", "\"18446744073709551616\""}, "B15", kJson},
      // B: V1
      {V1, {R"("version":"1")", R"("version":1)"}, "B1", kJson},
      {V1, {R"("version":"1")", R"("version":"2")"}, "B1", "profiling_platform_not_supported"},
      {V1, {"2026-01-15T12:00:00.000000Z", "2026-01-15 12:00:00+01:00"}, "", ""},
      {V1, {"2026-01-15T12:00:00.000000Z", "2026-01-15T12:00:00.000000"}, "B4", kJson},
      {V1, {"2026-01-15T12:00:00.000000Z", "2026-02-30T12:00:00.000000Z"}, "B4", kJson},
      {V1, {R"("architecture":"x86_64",)", ""}, "B", kJson},
      {V1, {R"("platform":"rust")", R"("platform":"cocoa")"}, "B7", "profiling_invalid_profile_metadata"},
      {V1, {R"("transaction":{)", R"("runtime":{"name":"x"},"transaction":{)"}, "B", kJson},
      {V1, {R"("transaction":{)", R"("other":{)"}, "B11", "profiling_no_transaction_associated"},
      {V1, {R"("name":"svc \"main\"")", R"("name":"")"}, "B12", "profiling_invalid_transaction_metadata"},
      {V1, {R"("active_thread_id":"4242")", R"("active_thread_id":"4244")"}, "P6", ""},
      {V1, {R"("active_thread_id":"4242")", R"("relative_start_ns":1,"relative_end_ns":2)"}, "B", "profiling_not_enough_samples"},
      {V1, {"\"1999999999\"", "\"30000000000\""}, "", ""},
      {V1, {"\"1999999999\"", "\"30000000001\""}, "B", "profiling_duration_is_too_long"},
      {V1, {R"("name":"svc"})", R"("name":"svc","priority":-1})"}, "B17", kJson},
      {V1, {R"("name":"svc"})", R"("name":"svc","priority":1})"}, "P6", ""},
      {V1, {R"("environment":"production")", R"("environment":null)"}, "B", kJson},
      // C: V2
      {V2, {R"("version":"2")", R"("version":"1")"}, "C1", "profiling_platform_not_supported"},
      {V2, {R"(,"version":"0.1.0")", ""}, "C", kJson},
      {V2, {R"("sentry-prof")", R"("")"}, "P2", ""},
      {V2, {R"("release":"svc@0123456789ab",)", ""}, "P2", ""},
      {V2, {R"("debug_meta":{)", R"("debug_meta":null,"other":{)"}, "C7", kJson},
      {V2, {"1768478400.000000", "1768478400.00000"}, "P3", ""},
      {V2, {"1768478400.000000", "\"1768478400.000000\""}, "C8", kJson},
      {V2, {R"("thread_id":"4242")", R"("thread_id":4242)"}, "C8", kJson},
      {V2, {first_v2, R"({"timestamp":1768478335.999999,"thread_id":"4242","stack_id":1})"}, "", ""},
      {V2, {first_v2, R"({"timestamp":1768478335.999998,"thread_id":"4242","stack_id":1})"}, "P3", "profiling_duration_is_too_long"},
      {V2, {last_v2, R"({"timestamp":1768478401.000000,)"}, "P3", ""},
      {V2, {R"("stack_id":3)", R"("stack_id":4)"}, "P7", "profiling_malformed_samples"},
      {V2, {"[[],[0,1]", "[[],[0,4]"}, "P7", "profiling_malformed_stacks"},
      {V2, {"[[],[0,1]", "[[],[0,1.0]"}, "C12", kJson},
      // E1: images
      {V2, {R"("type":"elf")", R"("type":"symbolic")"}, "P4", ""},
      {V2, {R"("type":"elf")", R"("type":"ELF")"}, "E1", kJson},
      {V2, {"e20a2268-5dc6-c165-b6aa-a12fa6765a6e", "e20a2268-5dc6-c165-b6aa-a12fa6765a6e-1a"}, "P4", ""},
      {V2, {"e20a2268-5dc6-c165-b6aa-a12fa6765a6e", "68220ae2c65d65c1b6aaa12fa6765a6ec2f5f434"}, "E1", kJson},
      {V2, {R"("image_size":90112)", R"("image_size":"90112")"}, "", ""},
      {V2, {R"("image_size":90112)", R"("image_size":90112.5)"}, "E1", kJson},
      {V2, {R"("image_size":90112)", R"("image_size":46179488366592)"}, "P4", ""},
      {V2, {"0x55d0c0a00000", "0x55d0c0b00000"}, "P4", ""},
      // F1: frames
      {V2, {R"("function":"main",)", ""}, "P5", ""},
      {V2, {R"("function":"main")", R"("function":"main","name":"main")"}, "F1", kJson},
      {V2, {R"("function":"main")", R"("function":"main","lineno":4294967295)"}, "", ""},
      {V2, {R"("function":"main")", R"("function":"main","lineno":4294967296)"}, "F1", kJson},
      {V2, {R"(,"package":"/usr/bin/svc"})", "}"}, "P5", ""},
      {V2, {"[[],[0,1]", "[[],[0,0]"}, "", ""},
      {V2, {"\"0x7fff00000000\",\"instr", "\"x\",\"instr"}, "", ""},
      // P6: threads
      {V2, {R"("4242":{"name":"svc"},)", ""}, "P6", ""},
      {V2, {R"("4242":{"name":"svc"})", R"("4242":{"name":"svc"},"1":{"name":"x"})"}, "P6", ""},
      {V2, {R"({"name":"svc"})", R"({"name":""})"}, "P6", ""},
  }));
  // clang-format on
  CAPTURE(c.change.from, c.change.to);
  const CheckReport report = check(c.kind, c.change);
  CAPTURE(report.problems);
  CHECK(report.reason == c.reason);
  CHECK(report.is_accepted == c.reason.empty());
  if (c.rule.empty()) {
    CHECK(report.problems == std::vector<std::string>());
  } else {
    CHECK(has_rule(report, c.rule));
  }
}

TEST_CASE("The server refuses elf as it is written") {
  const CheckReport report = check_sentry_profile(golden(V2), V2, ImageTypes::AsWritten);
  CHECK(report.reason == kJson);
  CHECK(has_rule(report, "E1"));
}

TEST_CASE("A profile of more than 50 MiB is refused for its size") {
  const std::string text(50 * 1024 * 1024 + 1, ' ');
  CHECK(check_sentry_profile(text, V2).reason == "profiling_exceed_size_limit");
  CHECK(check_sentry_profile(text.substr(1), V2).reason == kJson);
}

// Hidden, since Meson runs it as a test of its own.
TEST_CASE("The checker agrees with the server on every conformance case", "[.][conformance]") {
  const char* folder = std::getenv("SENTRY_PROF_CONFORMANCE");
  if (folder == nullptr) {
    sentry_prof::testing::note_optional_skip(
        "SENTRY_PROF_CONFORMANCE does not name the folder with cases.tsv");
    return;
  }
  std::istringstream cases(read_whole_file(std::string(folder) + "/cases.tsv"));
  std::string line;
  std::getline(cases, line);  // the columns' names
  int checked = 0;
  while (std::getline(cases, line)) {
    const std::vector<std::string> fields = split(line, '\t');  // file, kind, relay, reason, ...
    if (fields.size() < 4 || fields[1] == "envelope") continue;
    const ProfileKind kind = fields[1] == "v1" ? V1 : V2;
    const CheckReport report = check_sentry_profile(
        read_whole_file(std::string(folder) + "/" + fields[0]), kind, ImageTypes::AsWritten);
    CAPTURE(fields[0], report.problems);
    CHECK(report.is_accepted == (fields[2] == "accept"));
    CHECK(report.reason == fields[3]);
    ++checked;
  }
  CHECK(checked > 0);
}
