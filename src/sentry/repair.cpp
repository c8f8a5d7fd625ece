// The driver: fields first, then the lists, which can be understood once fields have their forms.
#include "sentry_prof/repair.h"

#include "sentry/repair_fields.h"
#include "sentry/repair_lists.h"
#include "sentry/text_kind.h"

#include <utility>

namespace sentry_prof {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

RepairResult repair(std::string text) {
  using sentry::Change;
  const bool has_mark = text.starts_with(kByteOrderMark);
  const std::string_view json = std::string_view(text).substr(has_mark ? kByteOrderMark.size() : 0);
  if (sentry::looks_like_envelope(json)) {
    return {std::move(text), RepairOutcome::Envelope, {}};
  }
  const ValidatedKind kind = sentry::profile_kind(json);
  if (kind == ValidatedKind::Unknown) return {std::move(text), RepairOutcome::Unreadable, {}};
  sentry::MendedFields fields = sentry::mend_fields(json, kind);
  if (!fields.is_whole) return {std::move(text), RepairOutcome::Unreadable, {}};
  // Two objects, of which only a key's other name told that the first is no envelope's header.
  if (fields.is_changed && sentry::looks_like_envelope(fields.text)) {
    return {std::move(text), RepairOutcome::Unreadable, {}};
  }
  if (has_mark) fields.changes.add(Change::ByteOrderMark);
  if (fields.is_changed) {
    text = std::move(fields.text);
  } else if (has_mark) {
    text.erase(0, kByteOrderMark.size());
  }
  if (!fields.has_repeated) {
    auto lists = sentry::mend_lists(text, kind, fields.changes);
    if (lists) text = std::move(*lists);
  }
  return {std::move(text), RepairOutcome::Whole, fields.changes.listed()};
}

}  // namespace sentry_prof
