// Any bytes: they are judged without a crash, the same each time, and what is told of them holds
// together: each problem has its rule, a place in the text and a line and column that say the same.
#include "fuzz/require.h"
#include "sentry/rules.h"
#include "sentry_prof/validate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

using namespace sentry_prof;
using fuzz::require;

namespace {

constexpr size_t kListedPerRule = 100;
constexpr size_t kLongestText_bytes = 4096;  // of a pointer or message, whatever the keys are

// Lines and columns of ascending offsets, each byte looked at once.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text) {}

  void check(const Problem& problem) {
    require(problem.offset_bytes >= at_ && problem.offset_bytes <= text_.size());
    for (; at_ < problem.offset_bytes; ++at_) {
      ++column_;
      if (text_[at_] != '\n') continue;
      ++line_;
      column_ = 1;
    }
    require(problem.line == line_ && problem.column == column_);
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  uint32_t column_ = 1;
};

// RFC 6901: empty, or tokens behind slashes in which "~" is "~0" or "~1".
void check_pointer(std::string_view pointer) {
  require(pointer.empty() || pointer[0] == '/');
  require(pointer.size() <= kLongestText_bytes);
  for (size_t at = 0; (at = pointer.find('~', at)) != pointer.npos; ++at) {
    require(at + 1 < pointer.size() && (pointer[at + 1] == '0' || pointer[at + 1] == '1'));
  }
}

void check_problems(const ValidationReport& report, std::string_view text) {
  Places places(text);
  std::map<std::string_view, size_t> listed;
  for (const Problem& problem : report.problems) {
    require(sentry::find_rule(problem.rule) != nullptr);
    require(++listed[problem.rule] <= kListedPerRule);
    places.check(problem);
    check_pointer(problem.pointer);
    require(!problem.message.empty() && problem.message.size() <= kLongestText_bytes);
  }
  for (const UnlistedProblems& unlisted : report.unlisted) {
    require(unlisted.count > 0 && listed[unlisted.rule] == kListedPerRule);
  }
}

void check_verdicts(const ValidationReport& report, const ValidateOptions& options) {
  const auto any = [&report](auto holds) {
    return std::any_of(report.problems.begin(), report.problems.end(), holds);
  };
  require(report.valid == !any([](const Problem& p) { return p.severity == Severity::Error; }));
  require(report.relay.valid == (report.relay.reason.empty() && report.relay.http_status == 0));
  require(options.against_relay || report.relay.valid);
  require(options.against_documents || report.documents.valid);
  require(report.documents.reason.empty() && report.documents.http_status == 0);
  require(report.relay.valid || any([](const Problem& p) { return p.is_against_relay; }));
  require(report.documents.valid || any([](const Problem& p) { return p.is_against_documents; }));
}

bool is_same(const Problem& a, const Problem& b) {
  return a.rule == b.rule && a.severity == b.severity && a.pointer == b.pointer &&
         a.offset_bytes == b.offset_bytes && a.message == b.message;
}

void require_same(const ValidationReport& a, const ValidationReport& b) {
  require(std::equal(a.problems.begin(), a.problems.end(), b.problems.begin(), b.problems.end(),
                     is_same));
  require(a.kind == b.kind && a.relay.reason == b.relay.reason);
  require(a.summary.samples == b.summary.samples && a.summary.frames == b.summary.frames);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  for (const ValidateOptions& options :
       {ValidateOptions{true, true, true}, {true, false, true}, {false, true, true}}) {
    const ValidationReport report = validate(text, options);
    check_problems(report, text);
    check_verdicts(report, options);
    if (options.against_relay && options.against_documents) {
      require_same(report, validate(text, options));
    }
  }
  return 0;
}
