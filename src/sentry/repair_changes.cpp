#include "sentry/repair_changes.h"

namespace sentry_prof::sentry {

namespace {

struct Words {
  std::string_view what;
  std::string_view rule;
};

// By Change.
constexpr Words kWords[] = {
    {"byte order mark removed", "json-utf8"},
    {"key given its documented name", "alias-key"},
    {"null left out where none may stand", {}},
    {"negative priority left out", "thread-priority"},
    {"id written as 32 lower-case hex digits", "id-spelling"},
    {"debug_id given its dashes", "image-debug-id-spelling"},
    {"address written as a hex string", "address-decimal"},
    {"number put in quotes", {}},
    {"number taken out of its quotes", {}},
    {"integer freed of its fraction .0", {}},
    {"samples sorted by time", {}},
    {"sample left out that the server drops", {}},
    {"frame merged with an equal one", {}},
    {"frame left out that no stack has", {}},
    {"stack merged with an equal one", {}},
    {"stack left out that no sample has", {}},
    {"name left out of a thread without samples", "thread-metadata-unreferenced"},
    {"label left out of a queue without samples", {}},
};

}  // namespace

std::vector<RepairChange> ChangeList::listed() const {
  static_assert(sizeof(kWords) / sizeof(kWords[0]) == kChanges);
  std::vector<RepairChange> changes;
  for (size_t i = 0; i < kChanges; ++i) {
    if (counts_[i] > 0) changes.push_back({kWords[i].what, kWords[i].rule, counts_[i]});
  }
  return changes;
}

}  // namespace sentry_prof::sentry
