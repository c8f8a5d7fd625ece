#include "support/sentry_checker.h"

#include "support/sentry_document.h"
#include "support/sentry_json_reader.h"

namespace sentry_prof::testing {
namespace {

constexpr size_t kMaxItem_bytes = 50 * 1024 * 1024;
constexpr size_t kMaxNesting = 128;
constexpr char kInvalidJson[] = "profiling_invalid_json";

CheckReport refused(CheckReport report, Problems& problems, std::string reason) {
  report.is_accepted = false;
  report.reason = std::move(reason);
  report.problems = std::move(problems.list);
  return report;
}

// simdjson refuses what serde_json refuses, but for a byte order mark and deep nesting.
bool parse(std::string_view text, dom::parser& parser, dom::element& root, Problems& problems) {
  const std::string_view object = first_object(text);
  if (object.empty()) {
    problems.refuse("A1", "", "is no JSON object");
    return false;
  }
  if (const auto error = parser.parse(simdjson::padded_string(object)).get(root)) {
    problems.refuse("A1", "", simdjson::error_message(error));
    return false;
  }
  if (nesting_depth(root) > kMaxNesting) problems.refuse("A1", "", "is nested too deeply");
  return !problems.json_is_refused;
}

// The samples of V2 have their times with six decimals: seen in the text only.
void check_decimals(std::string_view text, Problems& problems) {
  static constexpr std::string_view kKey = "\"timestamp\":";
  for (size_t at = text.find(kKey); at != std::string_view::npos; at = text.find(kKey, at + 1)) {
    std::string_view number = text.substr(at + kKey.size());
    number = number.substr(0, number.find_first_of(",}"));
    const size_t dot = number.find('.');
    const bool is_good = dot != std::string_view::npos && number.size() - dot == 7 &&
                         number.find_first_not_of("0123456789.") == std::string_view::npos;
    if (!is_good) problems.add("P3", "/profile/samples", "timestamp " + std::string(number));
  }
}

void check_text(std::string_view text, dom::element root, ProfileKind kind, Problems& problems) {
  if (kind == ProfileKind::V2) check_decimals(text, problems);
  if (contains_null(root)) problems.add("P8", "", "has a null");
  const std::string_view object = first_object(text);
  const std::string_view rest = text.substr(object.data() + object.size() - text.data());
  if (rest != "\n" || text[0] != '{') problems.add("P9", "", "is not one object and a newline");
}

}  // namespace

CheckReport check_sentry_profile(std::string_view json, ProfileKind kind, ImageTypes image_types) {
  CheckReport report;
  report.kind = kind;
  Problems problems;
  if (json.size() > kMaxItem_bytes) {
    problems.add("G1", "", "is larger than 50 MiB");
    return refused(report, problems, "profiling_exceed_size_limit");
  }
  dom::parser parser;
  dom::element root;
  dom::object object;
  if (!parse(json, parser, root, problems) || root.get(object) != simdjson::SUCCESS) {
    return refused(report, problems, kInvalidJson);
  }
  const Document document = read_document(object, kind, image_types, problems);
  if (problems.json_is_refused) return refused(report, problems, kInvalidJson);
  if (!document.version_is_right) {
    problems.add(kind == ProfileKind::V1 ? "B1" : "C1", "/version", "is not this format's");
    return refused(report, problems, "profiling_platform_not_supported");
  }
  const std::string reason = refusal_of(document, kind, problems);
  check_promises(document, kind, problems);
  check_text(json, root, kind, problems);
  if (!reason.empty()) return refused(report, problems, reason);
  report.is_accepted = true;
  report.problems = std::move(problems.list);
  return report;
}

ProfileKind kind_of(std::string_view json) {
  return json.find("\"chunk_id\"") == std::string_view::npos ? ProfileKind::V1 : ProfileKind::V2;
}

}  // namespace sentry_prof::testing
