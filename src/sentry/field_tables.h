// The fields of the two formats, as data: their names, their forms, and which rule each breaks when
// it is missing, null or something else. profile_scan.h walks a text along these tables.
// Sources: Sample Format V1, Sample Format V2, Debug Meta Interface; of the server, Relay's profile
// types.
#pragma once

#include "base/json_reader.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sentry_prof::sentry {

enum class Form : uint8_t {
  Anything,
  Text,
  Bool,
  U32,             // a number: no sign, no fraction, no exponent, below 2^32
  Index,           // the same below 2^64
  Number,          // a number that a double can hold
  UnsignedOrText,  // below 2^64, as a number or in a string
  NumberOrText,
  Uuid,
  DebugId,
  Address,
  Time,     // RFC 3339
  Version,  // "1" or "2"
  Unit,     // of a measurement
  Object,
  List,     // of objects
  Map,      // any keys, values are objects
  TextMap,  // any keys, values are strings
  Stacks,   // a list of lists of indices
};

// Where a value goes once it has its form. Those that nobody asks for go nowhere.
enum class Slot : uint8_t {
  Nowhere,
  Version,
  EventId,
  SessionId,  // V2: profiler_id and chunk_id
  Platform,
  Release,
  Architecture,
  TransactionId,
  TraceId,
  TransactionName,
  ActiveThread,
  RelativeStart,
  RelativeEnd,
  SdkText,
  Unit,
  Elapsed,
  Timestamp,
  StackId,
  ThreadId,
  FunctionName,
  FileName,
  Line,
  FrameAddress,
  ImageType,
  ImageAddress,
  ImageOtherAddress,
  ImageSize,
  ImageDebugId,
  ImageCodeId,
};

struct Shape;

struct Field {
  std::string_view key;
  std::string_view alias = {};  // the server's other name for it
  Form form = Form::Anything;
  const Shape* shape = nullptr;   // of Object, of a List's elements, of a Map's values
  std::string_view wrong = {};    // the rule that a value of another form breaks
  std::string_view null = {};     // the rule that null breaks; empty: null may stand
  std::string_view missing = {};  // the rule that its absence breaks; empty: may be missing
  Slot slot = Slot::Nowhere;
  bool is_known_to_server = true;  // false: the server skips it whatever it is
};

// Shapes whose objects are facts, or that need a look when they end.
enum class ShapeKind : uint8_t {
  Plain,
  V1,
  V2,
  Device,
  Os,
  Transaction,
  ProfileData,
  Sample,
  Frame,
  Image,
  Thread,
};

struct Shape {
  ShapeKind kind;
  std::span<const Field> fields;  // at most 32
  std::string_view wrong;         // the rule that an element breaks that is no object
  uint32_t required = 0;          // those whose absence breaks a rule: a bit each

  constexpr Shape(ShapeKind its_kind, std::span<const Field> its_fields,
                  std::string_view its_wrong = {})
      : kind(its_kind), fields(its_fields), wrong(its_wrong) {
    for (size_t i = 0; i < fields.size(); ++i) {
      if (!fields[i].missing.empty()) required |= 1U << i;
    }
  }
};

// `present` has a bit for each field of the shape.
constexpr bool is_present(const Shape& shape, uint32_t present, std::string_view key) {
  for (size_t i = 0; i < shape.fields.size(); ++i) {
    if (shape.fields[i].key == key) return (present >> i & 1) != 0;
  }
  return false;
}

struct FoundField {
  const Field* field = nullptr;  // null: the shape has no such field
  uint8_t index = 0;
  bool is_alias = false;

  uint32_t bit() const { return field == nullptr ? 0 : 1U << index; }
};

// By its name, or the server's other name for it.
inline FoundField find_field(const Shape& shape, const JsonString& key) {
  for (size_t i = 0; i < shape.fields.size(); ++i) {
    const Field& field = shape.fields[i];
    const bool is_alias = !field.alias.empty() && key.is(field.alias);
    if (is_alias || key.is(field.key)) return {&field, static_cast<uint8_t>(i), is_alias};
  }
  return {};
}

extern const Shape kV1Shape;
extern const Shape kV2Shape;

// What V1 and V2 share.
extern const Shape kDebugMetaShape;
extern const Shape kFrameShape;
extern const Shape kThreadShape;

// A field that must be there and have its form: one rule for all three ways to break it.
constexpr Field required(std::string_view key, Form form, std::string_view rule,
                         Slot slot = Slot::Nowhere, const Shape* shape = nullptr) {
  return {key, {}, form, shape, rule, rule, rule, slot, true};
}

// May be missing or null.
constexpr Field nullable(std::string_view key, Form form, std::string_view rule,
                         Slot slot = Slot::Nowhere, const Shape* shape = nullptr) {
  return {key, {}, form, shape, rule, {}, {}, slot, true};
}

// May be missing, but not null.
constexpr Field optional_field(std::string_view key, Form form, std::string_view rule,
                               Slot slot = Slot::Nowhere, const Shape* shape = nullptr) {
  return {key, {}, form, shape, rule, rule, {}, slot, true};
}

// In the documents only.
constexpr Field documented(std::string_view key, Form form, std::string_view rule,
                           Slot slot = Slot::Nowhere, const Shape* shape = nullptr) {
  return {key, {}, form, shape, rule, {}, {}, slot, false};
}

constexpr Field with_alias(Field field, std::string_view alias) {
  field.alias = alias;
  return field;
}

constexpr Field with_missing(Field field, std::string_view rule) {
  field.missing = rule;
  return field;
}

constexpr Field with_null(Field field, std::string_view rule) {
  field.null = rule;
  return field;
}

}  // namespace sentry_prof::sentry
