// Any bytes: mending them never crashes, is the same twice
// as once, and makes nothing worse in the judge's eyes.
#include "fuzz/require.h"
#include "sentry_prof/repair.h"
#include "sentry_prof/validate.h"

#include <cstddef>
#include <cstdint>
#include <string>

using namespace sentry_prof;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const RepairResult once = repair(text);
  require(once.changes.empty() == (once.text == text));
  require(once.outcome == RepairOutcome::Whole || once.changes.empty());
  const RepairResult twice = repair(once.text);
  require(twice.outcome == once.outcome);
  require(twice.changes.empty() && twice.text == once.text);
  if (once.changes.empty()) return 0;
  const ValidationReport before = validate(text);
  const ValidationReport after = validate(once.text);
  require(after.kind == before.kind || before.kind == ValidatedKind::Unknown);
  require(after.relay.valid || !before.relay.valid);
  require(after.documents.valid || !before.documents.valid);
  return 0;
}
