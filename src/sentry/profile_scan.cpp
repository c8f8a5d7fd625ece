#include "sentry/profile_scan.h"

#include "base/json_reader.h"
#include "sentry/fact_gatherer.h"
#include "sentry/field_tables.h"
#include "sentry/scalar.h"
#include "sentry/scan_reporter.h"
#include "sentry/text_places.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

constexpr size_t kShapeKinds = static_cast<size_t>(ShapeKind::Thread) + 1;

// A field of a shape under one of its two names.
struct Name {
  uint8_t field = 0;
  bool is_alias = false;
};

// Guesses each key of an object from the one in front of it: objects of a kind have theirs in the
// same order. Right nearly always, and only a guess.
class KeyGuess {
 public:
  Name after(ShapeKind kind, size_t place) const { return at(kind)[place]; }
  void learn(ShapeKind kind, size_t place, Name name) { next_[index(kind)][place] = name; }

 private:
  using Row = std::array<Name, 33>;  // by the place of the key in front: 0 is the beginning
  static size_t index(ShapeKind kind) { return static_cast<size_t>(kind); }
  const Row& at(ShapeKind kind) const { return next_[index(kind)]; }

  std::array<Row, kShapeKinds> next_{};
};

std::string_view name_of(const Field& field, bool is_alias) {
  return is_alias ? field.alias : field.key;
}

// What an object has had so far: a bit for each field.
struct Members {
  uint32_t seen = 0;
  uint32_t present = 0;  // and not null
  uint32_t by_alias = 0;
};

class ProfileScan {
 public:
  ProfileScan(std::string_view text, ValidatedKind kind, ProblemList& problems)
      : text_(text),
        kind_(kind),
        reader_(text),
        reporter_(text, problems),
        gatherer_(kind, reporter_, facts_) {}

  ProfileFacts run() {
    if (reader_.peek() == JsonKind::Object) {
      object(kind_ == ValidatedKind::V1 ? kV1Shape : kV2Shape);
    } else if (!reader_.failed()) {
      reporter_.report("json-top-level", reader_.offset(),
                       [] { return std::string("this is no object, so it is no profile"); });
      reader_.skip_value();
    }
    finish();
    return std::move(facts_);
  }

 private:
  void object(const Shape& shape);
  bool next_member(const Shape& shape, size_t& place, const Field*& field, Name& name);
  void member(const Field& field, uint32_t bit, Name name, Members& members);
  bool is_repeated(const Field& field, uint32_t bit, Name name, Members& members);
  void tell_missing(const Shape& shape, uint32_t seen, size_t offset);
  bool value(const Field& field, Scalar& value, bool was_read);
  void tell_alias(const Field& field, size_t offset);
  bool try_scalar(const Field& field, Scalar& scalar);
  void scalar(const Field& field, Scalar& scalar);
  void container(const Field& field, JsonKind kind);
  void list(const Field& field);
  void map(const Field& field);
  void text_map(const Field& field);
  void stacks();
  void stack();
  void element(const Shape& shape, JsonKind kind);
  void wrong(const Field& field, std::string_view rule, JsonKind kind, const Scalar& scalar);
  void wrong_container(std::string_view rule, std::string_view expected, JsonKind kind);
  void finish();
  void tell_fault(const JsonFault& fault);
  // Behind a fault the path stays, to tell where that is.
  void leave() {
    if (!reader_.failed()) reporter_.path().pop();
  }
  void find_missing_frames();

  std::string_view text_;
  ValidatedKind kind_;
  ProfileFacts facts_;
  JsonReader reader_;
  ScanReporter reporter_;
  FactGatherer gatherer_;
  KeyGuess guess_;
  JsonString last_key_;
  std::string buffer_;
};

// Precondition: peek() returned Object.
void ProfileScan::object(const Shape& shape) {
  const size_t offset = reader_.offset();
  const uint64_t refusals = reporter_.refusals();
  gatherer_.begin(shape.kind, offset);
  reader_.begin_object();
  Members members;
  size_t place = 0;
  const Field* field = nullptr;
  Name name;
  while (next_member(shape, place, field, name)) {
    if (field == nullptr) {
      reader_.skip_value();
    } else {
      member(*field, 1U << name.field, name, members);
    }
  }
  if (reader_.failed()) return;
  if ((shape.required & ~members.seen) != 0) tell_missing(shape, members.seen, offset);
  gatherer_.end(shape, members.present, offset, reporter_.refusals() == refusals);
}

// `place`: that of the last known key, from 1; `field` is null for a key that no table has.
bool ProfileScan::next_member(const Shape& shape, size_t& place, const Field*& field, Name& name) {
  name = guess_.after(shape.kind, place);
  if (name.field < shape.fields.size()) {
    field = &shape.fields[name.field];
    const std::string_view expected = name_of(*field, name.is_alias);
    if (!expected.empty() && reader_.next_member_is(expected)) {
      last_key_ = {expected, false};
      place = name.field + 1U;
      return true;
    }
  }
  if (!reader_.next_member(last_key_)) return false;
  const FoundField found = find_field(shape, last_key_);
  field = found.field;
  if (field == nullptr) return true;
  name = {found.index, found.is_alias};
  guess_.learn(shape.kind, place, name);
  place = name.field + 1U;
  return true;
}

void ProfileScan::member(const Field& field, uint32_t bit, Name name, Members& members) {
  Scalar scalar;
  scalar.offset = reader_.offset();
  const bool was_read = try_scalar(field, scalar);
  const bool is_new = (members.seen & bit) == 0;
  // Nearly all members: nothing to tell, so no path is needed.
  if (was_read && is_new && !name.is_alias && gatherer_.take_plain(field, scalar)) {
    members.seen |= bit;
    members.present |= bit;
    return;
  }
  reporter_.path().push_key(last_key_);
  if (!is_new && is_repeated(field, bit, name, members)) {
    if (!was_read) reader_.skip_value();
  } else {
    members.seen |= bit;
    if (name.is_alias) {
      members.by_alias |= bit;
      tell_alias(field, scalar.offset);
    }
    if (value(field, scalar, was_read)) members.present |= bit;
  }
  leave();
}

void ProfileScan::tell_alias(const Field& field, size_t offset) {
  reporter_.report(field.key == "event_id" ? "v1-profile-id" : "alias-key", offset,
                   [&] { return "the documents call this " + quoted(field.key); });
}

bool ProfileScan::is_repeated(const Field& field, uint32_t bit, Name name, Members& members) {
  if (!field.is_known_to_server) return false;
  const bool was_alias = (members.by_alias & bit) != 0;
  const bool is_same = was_alias == name.is_alias;
  reporter_.report(is_same ? "json-duplicate-key" : "json-alias-twice", reader_.offset(), [&] {
    return is_same ? "this object has the key " + quoted(name_of(field, name.is_alias)) + " already"
                   : quoted(field.alias) + " and " + quoted(field.key) +
                         " are one field, and this object has both";
  });
  return true;
}

void ProfileScan::tell_missing(const Shape& shape, uint32_t seen, size_t offset) {
  for (size_t i = 0; i < shape.fields.size(); ++i) {
    if ((seen >> i & 1) != 0 || shape.fields[i].missing.empty()) continue;
    reporter_.report(shape.fields[i].missing, offset,
                     [&] { return "there is no " + quoted(shape.fields[i].key) + " here"; });
  }
}

// Is it there, and not null? `was_read`: `value` is it.
bool ProfileScan::value(const Field& field, Scalar& value, bool was_read) {
  if (was_read) {
    scalar(field, value);
    return true;
  }
  const JsonKind kind = reader_.peek();
  if (kind == JsonKind::Malformed) return false;
  if (field.form == Form::Anything) {
    reader_.skip_value();
  } else if (kind == JsonKind::Object || kind == JsonKind::Array) {
    container(field, kind);
  } else {
    value = read_scalar(reader_, kind);
    if (reader_.failed()) return false;
    if (kind != JsonKind::Null) {
      scalar(field, value);
    } else if (!field.null.empty()) {
      wrong(field, field.null, kind, value);
    }
  }
  return kind != JsonKind::Null;
}

// Reads what most fields are without asking for the kind first.
bool ProfileScan::try_scalar(const Field& field, Scalar& scalar) {
  switch (field.form) {
    case Form::Index:
    case Form::U32:
      scalar.kind = JsonKind::Number;
      return reader_.try_unsigned(scalar.unsigned_value);
    case Form::Number:
      scalar.kind = JsonKind::Number;
      return reader_.try_double(scalar.double_value);
    case Form::Bool:
    case Form::Object:
    case Form::List:
    case Form::Map:
    case Form::TextMap:
    case Form::Stacks:
      return false;
    default:
      scalar.kind = JsonKind::String;
      return reader_.try_string(scalar.string);
  }
}

void ProfileScan::scalar(const Field& field, Scalar& scalar) {
  if (has_form(field.form, scalar, buffer_)) {
    gatherer_.take(field.slot, scalar);
    return;
  }
  const bool is_thread_name =
      field.slot == Slot::ThreadId && scalar.kind == JsonKind::String && !scalar.string.raw.empty();
  wrong(field, is_thread_name ? "v1-sample-thread-name" : field.wrong, scalar.kind, scalar);
}

void ProfileScan::wrong(const Field& field, std::string_view rule, JsonKind kind,
                        const Scalar& scalar) {
  reporter_.report(rule, scalar.offset, [&] {
    return "expected " + std::string(describe(field.form)) + ", found " + describe(kind, scalar);
  });
}

void ProfileScan::container(const Field& field, JsonKind kind) {
  const bool is_object = kind == JsonKind::Object;
  if (is_object && field.form == Form::Object) return object(*field.shape);
  if (is_object && field.form == Form::Map) return map(field);
  if (is_object && field.form == Form::TextMap) return text_map(field);
  if (!is_object && field.form == Form::List) return list(field);
  if (!is_object && field.form == Form::Stacks) return stacks();
  wrong_container(field.wrong, describe(field.form), kind);
}

// Precondition: a value of that kind comes next.
void ProfileScan::wrong_container(std::string_view rule, std::string_view expected, JsonKind kind) {
  Scalar scalar;
  scalar.offset = reader_.offset();
  if (kind == JsonKind::Object || kind == JsonKind::Array) {
    reader_.skip_value();
  } else {
    scalar = read_scalar(reader_, kind);
  }
  if (reader_.failed()) return;
  reporter_.report(rule, scalar.offset, [&] {
    return "expected " + std::string(expected) + ", found " + describe(kind, scalar);
  });
}

void ProfileScan::element(const Shape& shape, JsonKind kind) {
  if (kind == JsonKind::Object) {
    object(shape);
  } else if (kind != JsonKind::Malformed) {
    wrong_container(shape.wrong, "an object", kind);
  }
}

void ProfileScan::list(const Field& field) {
  const Shape& shape = *field.shape;
  const uint64_t refusals = reporter_.refusals();
  const size_t offset = reader_.offset();
  gatherer_.begin_list(shape.kind, text_.size() - offset);
  gatherer_.set_in_transaction_list(shape.kind == ShapeKind::Transaction);
  reader_.begin_array();
  for (size_t i = 0; reader_.next_element(); ++i) {
    reporter_.path().push_index(i);
    element(shape, reader_.peek());
    leave();
  }
  gatherer_.set_in_transaction_list(false);
  const bool is_typed = !reader_.failed() && reporter_.refusals() == refusals;
  if (shape.kind == ShapeKind::Sample) {
    facts_.samples_offset = offset;
    facts_.samples_are_typed = is_typed;
  } else if (shape.kind == ShapeKind::Frame) {
    facts_.frames_offset = offset;
    facts_.frames_are_typed = is_typed;
  }
}

// Keys may repeat: the server keeps the last one.
void ProfileScan::map(const Field& field) {
  gatherer_.begin_list(field.shape->kind, text_.size() - reader_.offset());
  reader_.begin_object();
  JsonString key;
  while (reader_.next_member(key)) {
    reporter_.path().push_key(key);
    const JsonKind kind = reader_.peek();
    if (field.shape->kind == ShapeKind::Thread)
      gatherer_.take_thread_metadata(key, reader_.offset());
    element(*field.shape, kind);
    leave();
  }
}

void ProfileScan::text_map(const Field& field) {
  reader_.begin_object();
  JsonString key;
  JsonString text;
  while (reader_.next_member(key)) {
    if (reader_.try_string(text)) continue;
    reporter_.path().push_key(key);
    const JsonKind kind = reader_.peek();
    if (kind != JsonKind::Malformed) wrong_container(field.wrong, "a string", kind);
    leave();
  }
}

void ProfileScan::stacks() {
  const uint64_t refusals = reporter_.refusals();
  facts_.stacks_offset = reader_.offset();
  gatherer_.begin_stacks(text_.size() - facts_.stacks_offset);
  reader_.begin_array();
  for (size_t i = 0; reader_.next_element(); ++i) {
    const JsonKind kind = reader_.peek();
    reporter_.path().push_index(i);
    if (kind == JsonKind::Array) {
      stack();
    } else if (kind != JsonKind::Malformed) {
      wrong_container("stack", "an array of frame indices", kind);
    }
    leave();
  }
  facts_.stacks_are_typed = !reader_.failed() && reporter_.refusals() == refusals;
}

void ProfileScan::stack() {
  uint64_t largest = 0;
  size_t count = 0;
  reader_.begin_array();
  for (; reader_.next_element(); ++count) {
    uint64_t frame = 0;
    if (reader_.try_unsigned(frame)) {
      largest = std::max(largest, frame);
      continue;
    }
    const JsonKind kind = reader_.peek();
    if (kind == JsonKind::Malformed) break;
    reporter_.path().push_index(count);
    wrong_container("stack-frame-index", describe(Form::Index), kind);
    leave();
  }
  StackFact fact;
  fact.is_empty = count == 0;
  fact.largest_frame =
      static_cast<uint32_t>(std::min<uint64_t>(largest, StackFact::kLargestIndex)) &
      StackFact::kLargestIndex;
  gatherer_.take_stack(fact);
}

void ProfileScan::finish() {
  facts_.is_whole = !reader_.failed();
  if (reader_.failed()) {
    tell_fault(*reader_.fault());
    return;
  }
  find_missing_frames();
  const size_t rest = text_.find_first_not_of(" \t\r\n", reader_.offset());
  if (rest == text_.npos) return;
  reporter_.report("json-trailing-bytes", rest,
                   [] { return std::string("the profile has ended in front of this"); });
}

std::string_view rule_of(JsonFault::Kind kind) {
  switch (kind) {
    case JsonFault::Kind::Depth:
      return "json-depth";
    case JsonFault::Kind::Utf8:
      return "json-utf8";
    case JsonFault::Kind::Syntax:
      break;
  }
  return "json-syntax";
}

// A text in another encoding fails at its first or second byte, with a fault that would not tell.
std::string_view other_encoding(std::string_view text) {
  using namespace std::string_view_literals;
  struct Begin {
    std::string_view bytes;
    std::string_view encoding;  // as iconv(1) names it; without LE or BE it reads the mark
  };
  // Those of UTF-32 first: they begin with those of UTF-16.
  constexpr Begin kBegins[] = {{"\xFF\xFE\0\0"sv, "UTF-32"}, {"\0\0\xFE\xFF"sv, "UTF-32"},
                               {"{\0\0\0"sv, "UTF-32LE"},    {"\0\0\0{"sv, "UTF-32BE"},
                               {"\xFF\xFE"sv, "UTF-16"},     {"\xFE\xFF"sv, "UTF-16"},
                               {"{\0"sv, "UTF-16LE"},        {"\0{"sv, "UTF-16BE"}};
  const auto* const found =
      std::find_if(std::begin(kBegins), std::end(kBegins),
                   [&](const Begin& begin) { return text.starts_with(begin.bytes); });
  return found == std::end(kBegins) ? "" : found->encoding;
}

void ProfileScan::tell_fault(const JsonFault& fault) {
  if (const std::string_view encoding = other_encoding(text_); !encoding.empty()) {
    return reporter_.report("json-utf8", 0, [&] {
      return fmt::format("the text is {0}, not UTF-8; convert it: iconv -f {0} -t UTF-8", encoding);
    });
  }
  const bool has_bom = fault.offset == 0 && text_.starts_with("\xEF\xBB\xBF");
  const std::string_view rule = has_bom ? "json-utf8" : rule_of(fault.kind);
  reporter_.report(rule, fault.offset, [&] {
    return std::string(has_bom ? "a byte order mark; remove these three bytes" : fault.what);
  });
}

void ProfileScan::find_missing_frames() {
  if (!facts_.frames_are_typed) return;
  const size_t frames = facts_.frame_count;
  for (StackFact& stack : facts_.stacks) {
    stack.has_missing_frame = !stack.is_empty && stack.largest_frame >= frames;
  }
}

}  // namespace

ProfileFacts scan_profile(std::string_view text, ValidatedKind kind, ProblemList& problems) {
  return ProfileScan(text, kind, problems).run();
}

}  // namespace sentry_prof::sentry
