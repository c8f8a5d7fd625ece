#include "summary.h"

#include <stdexcept>

#include <simdjson.h>

namespace sentry_prof::testing {

namespace {

std::string pointer_to(std::string_view key) {
  std::string pointer(1, '/');
  pointer += key;
  return pointer;
}

simdjson::dom::element find(simdjson::dom::parser& parser, std::string_view key) {
  simdjson::dom::element found;
  if (parser.doc.root().at_pointer(pointer_to(key)).get(found) != simdjson::SUCCESS) {
    throw std::runtime_error("the summary has no " + std::string(key));
  }
  return found;
}

}  // namespace

Summary::Summary() : parser_(std::make_shared<simdjson::dom::parser>()) {}

Summary Summary::load(const std::string& path) {
  Summary summary;
  if (const auto error = summary.parser_->load(path).error()) {
    throw std::runtime_error(path + ": " + simdjson::error_message(error));
  }
  return summary;
}

bool Summary::has(std::string_view key) const {
  return parser_->doc.root().at_pointer(pointer_to(key)).error() == simdjson::SUCCESS;
}

double Summary::number(std::string_view key) const { return double{find(*parser_, key)}; }

std::string Summary::text(std::string_view key) const {
  return std::string(std::string_view{find(*parser_, key)});
}

std::vector<std::string> Summary::texts(std::string_view key) const {
  std::vector<std::string> result;
  for (const simdjson::dom::element entry : find(*parser_, key).get_array()) {
    result.emplace_back(std::string_view{entry});
  }
  return result;
}

bool Summary::flag(std::string_view key) const { return bool{find(*parser_, key)}; }

double Summary::sum_of(std::string_view key) const {
  double sum = 0;
  for (const auto& [name, value] : find(*parser_, key).get_object()) sum += double{value};
  return sum;
}

double Summary::share_complete() const {
  const double walks = sum_of("walk_ends");
  return walks == 0 ? 0 : number("samples_complete") / walks;
}

double Summary::share_of_expected_samples() const {
  const double expected = number("target_cpu_s") * number("requested_hz");
  return expected == 0 ? 0 : number("sample_records") / expected;
}

}  // namespace sentry_prof::testing
