#include "sentry/repair_fields.h"

#include "base/json_reader.h"
#include "sentry/field_tables.h"
#include "sentry/repair_scalar.h"
#include "sentry/rules.h"
#include "sentry/scalar.h"
#include "sentry/text_edit.h"

#include <optional>

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

// The fields that the object at `offset` has more than once, under whichever name.
uint32_t repeated_fields(std::string_view text, size_t offset, const Shape& shape) {
  JsonReader reader = JsonReader::at(text, offset);
  if (reader.peek() != JsonKind::Object) return 0;
  reader.begin_object();
  uint32_t seen = 0;
  uint32_t repeated = 0;
  JsonString key;
  while (reader.next_member(key)) {
    const uint32_t bit = find_field(shape, key).bit();
    repeated |= seen & bit;
    seen |= bit;
    reader.skip_value();
  }
  return repeated;
}

bool is_refused(std::string_view rule) {
  const Rule* const found = find_rule(rule);
  return found != nullptr && found->relay == RelayEffect::Refuses;
}

// Null breaks a rule, and absence does not, or one that costs less.
bool is_better_missing(const Field& field) {
  if (field.null.empty()) return false;
  return field.missing.empty() || (is_refused(field.null) && !is_refused(field.missing));
}

class FieldRepair {
 public:
  FieldRepair(std::string_view text, ValidatedKind kind, bool trusts_decimal)
      : text_(text), kind_(kind), trusts_decimal_(trusts_decimal), reader_(text), edit_(text) {}

  MendedFields run() {
    if (reader_.peek() != JsonKind::Object) return {};
    object(kind_ == ValidatedKind::V1 ? kV1Shape : kV2Shape);
    if (reader_.failed()) return {};
    result_.is_whole = true;
    result_.is_changed = edit_.is_changed();
    if (result_.is_changed) result_.text = std::move(edit_).finish();
    return std::move(result_);
  }
  // Decimal addresses were mended, and there are some in hex without "0x": those may have been hex,
  // too.
  bool has_misread_addresses() const {
    return trusts_decimal_ && has_decimal_addresses_ && has_bare_hex_addresses_;
  }

 private:
  void object(const Shape& shape);
  bool can_be_left_out(const FoundField& found, JsonKind kind);
  void value(const Field& field, JsonKind kind);
  void scalar(const Field& field, JsonKind kind);
  void elements(const Field& field);
  void map(const Field& field);
  void stacks();

  std::string_view text_;
  ValidatedKind kind_;
  bool trusts_decimal_;
  JsonReader reader_;
  TextEdit edit_;
  MendedFields result_;
  bool has_decimal_addresses_ = false;
  bool has_bare_hex_addresses_ = false;
};

void FieldRepair::object(const Shape& shape) {
  const size_t offset = reader_.offset();
  std::optional<uint32_t> repeated;  // once somebody asks
  const auto is_single = [&](uint32_t bit) {
    if (!repeated) repeated = repeated_fields(text_, offset, shape);
    return (*repeated & bit) == 0;
  };
  reader_.begin_object();
  MemberEdit members(edit_);
  uint32_t seen = 0;
  JsonString key;
  while (reader_.next_member(key)) {
    const auto key_offset = static_cast<size_t>(key.raw.data() - text_.data()) - 1;
    const FoundField found = find_field(shape, key);
    const JsonKind kind = reader_.peek();
    if (kind == JsonKind::Malformed) return;
    if (found.field != nullptr && found.field->is_known_to_server && (seen & found.bit()) != 0) {
      result_.has_repeated = true;
    }
    seen |= found.bit();
    if (can_be_left_out(found, kind) && is_single(found.bit())) {
      result_.changes.add(kind == JsonKind::Null ? Change::Null : Change::Priority);
      reader_.skip_value();
      members.drop(key_offset, reader_.offset());
      continue;
    }
    members.keep(key_offset);
    if (found.is_alias && is_single(found.bit())) {
      result_.changes.add(Change::Key);
      edit_.replace(key_offset, key_offset + key.raw.size() + 2,
                    fmt::format("\"{}\"", found.field->key));
    }
    if (found.field == nullptr) {
      reader_.skip_value();
    } else {
      value(*found.field, kind);
    }
    members.end_kept(reader_.offset());
  }
  if (!reader_.failed()) members.close();
}

bool FieldRepair::can_be_left_out(const FoundField& found, JsonKind kind) {
  if (found.field == nullptr) return false;
  if (kind == JsonKind::Null) return is_better_missing(*found.field);
  return kind == JsonKind::Number && found.field->wrong == "thread-priority" &&
         text_[reader_.offset()] == '-';
}

void FieldRepair::value(const Field& field, JsonKind kind) {
  if (kind == JsonKind::Object && field.form == Form::Object) return object(*field.shape);
  if (kind == JsonKind::Object && field.form == Form::Map) return map(field);
  if (kind == JsonKind::Array && field.form == Form::List) return elements(field);
  if (kind == JsonKind::Array && field.form == Form::Stacks) return stacks();
  if (kind == JsonKind::String || kind == JsonKind::Number) return scalar(field, kind);
  reader_.skip_value();
}

void FieldRepair::scalar(const Field& field, JsonKind kind) {
  const Scalar scalar = read_scalar(reader_, kind);
  if (reader_.failed()) return;
  if (field.form == Form::Address) {
    if (is_bare_hex_address(scalar)) has_bare_hex_addresses_ = true;
    if (is_decimal_address(scalar)) {
      has_decimal_addresses_ = true;
      if (!trusts_decimal_) return;
    }
  }
  const auto mended = mend_scalar(field, scalar, kind_ == ValidatedKind::V1 ? "1" : "2");
  if (!mended) return;
  result_.changes.add(mended->change);
  edit_.replace(scalar.offset, reader_.offset(), mended->json);
}

void FieldRepair::elements(const Field& field) {
  reader_.begin_array();
  while (reader_.next_element()) {
    reader_.peek() == JsonKind::Object ? object(*field.shape) : reader_.skip_value();
  }
}

void FieldRepair::map(const Field& field) {
  reader_.begin_object();
  JsonString key;
  while (reader_.next_member(key)) {
    reader_.peek() == JsonKind::Object ? object(*field.shape) : reader_.skip_value();
  }
}

void FieldRepair::stacks() {
  static constexpr Field kIndex{"", {}, Form::Index};
  reader_.begin_array();
  while (reader_.next_element()) {
    if (reader_.peek() != JsonKind::Array) {
      reader_.skip_value();
      continue;
    }
    reader_.begin_array();
    while (reader_.next_element()) {
      uint64_t index = 0;
      if (!reader_.try_unsigned(index)) value(kIndex, reader_.peek());
    }
  }
}

}  // namespace

MendedFields mend_fields(std::string_view text, ValidatedKind kind) {
  {
    FieldRepair repair(text, kind, true);
    MendedFields result = repair.run();
    if (!repair.has_misread_addresses()) return result;
  }
  return FieldRepair(text, kind, false).run();
}

}  // namespace sentry_prof::sentry
