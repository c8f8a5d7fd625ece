// Each field of the field tables: missing, null, of another type or range, under its other name.
// What comes of it must be what tests/data/validate/fields.tsv says, which was written
// independently of the tables.
#include "base/json_reader.h"
#include "sentry/field_tables.h"
#include "sentry/rules.h"
#include "sentry_prof/validate.h"
#include "support/catch2.h"
#include "validate_cases.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sentry_prof {
namespace {

using testing::split;

struct FieldFacts {
  std::string kind, path, form;
  bool is_required = false, may_be_null = false;
  std::string alias;
};

std::vector<FieldFacts> read_fields() {
  std::istringstream lines(testing::read_test_file("validate/fields.tsv"));
  std::vector<FieldFacts> fields;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto columns = split(line, '\t');
    if (columns.size() != 6) throw std::runtime_error("not six columns: " + line);
    fields.push_back({columns[0], columns[1], columns[2], columns[3] == "yes", columns[4] == "yes",
                      columns[5] == "-" ? "" : columns[5]});
  }
  return fields;
}

std::string document_of(const std::string& kind) {
  return testing::read_test_file("validate/" + kind + "_every_field.json");
}

// Of a member: its key with the quotes, and its value.
struct Member {
  size_t key = 0, key_end = 0, value = 0, value_end = 0;
};

Member find_member(const std::string& text, const std::string& path) {
  JsonReader reader(text);
  Member member;
  const auto steps = split(path, '/');
  for (size_t i = 1; i < steps.size(); ++i) {
    if (reader.peek() == JsonKind::Array) {
      reader.begin_array();
      if (!reader.next_element()) throw std::runtime_error("an empty list: " + path);
      continue;
    }
    reader.peek();
    reader.begin_object();
    for (JsonString key; reader.next_member(key) && !key.is(steps[i]); reader.skip_value()) {
      reader.peek();
    }
    if (reader.failed()) throw std::runtime_error("no such field: " + path);
    reader.peek();
    member.value = reader.offset();
    member.key_end = text.rfind('"', member.value - 1) + 1;
    member.key = member.key_end - steps[i].size() - 2;
  }
  reader.skip_value();
  member.value_end = reader.offset();
  return member;
}

std::string with_value(std::string text, const std::string& path, const std::string& value) {
  const Member member = find_member(text, path);
  return text.replace(member.value, member.value_end - member.value, value);
}

std::string with_key(std::string text, const std::string& path, const std::string& key) {
  const Member member = find_member(text, path);
  return text.replace(member.key, member.key_end - member.key, "\"" + key + "\"");
}

std::string with_both_keys(std::string text, const std::string& path, const std::string& other) {
  const Member member = find_member(text, path);
  const std::string value = text.substr(member.value, member.value_end - member.value);
  return text.insert(member.key, "\"" + other + "\": " + value + ", ");
}

// Does the server refuse the text for a field, not for what the fields mean together?
bool is_refused(const std::string& text) {
  ValidateOptions options;
  options.against_documents = false;
  const std::string_view reason = validate(text, options).relay.reason;
  return reason == "profiling_invalid_json" || reason == "profiling_platform_not_supported";
}

struct Values {
  std::vector<std::string> refused, taken;
};

// Of each form, besides null.
const std::map<std::string, Values>& values_of_forms() {
  static const std::map<std::string, Values> values = {
      {"text", {{"1", "1.5", "true", "{}", "[]", "[\"x\"]"}, {}}},
      {"version", {{"1", "2", "\"\"", "\"0\"", "\"3\"", "\"01\"", "true", "{}"}, {}}},
      {"bool", {{"0", "1", "\"true\"", "{}", "[]"}, {"true", "false"}}},
      {"u32", {{"-1", "1.0", "1e0", "4294967296", "\"1\"", "true", "[]"}, {"0", "4294967295"}}},
      {"index",
       {{"-1", "-0", "0.0", "0e0", "\"0\"", "false", "18446744073709551616", "[0]"}, {"0", "1"}}},
      {"number", {{"\"1\"", "true", "1e400", "{}"}, {"0", "-1", "1.5", "1e-400", "1768478400"}}},
      {"unsigned-or-text",
       {{"-1", "1.0", "1e3", "18446744073709551616", "\"\"", "\" 1\"", "\"1 \"", "\"-1\"",
         "\"1.0\"", "\"0x1\"", "\"18446744073709551616\"", "\"++1\"", "\"+\"", "true", "{}", "[]"},
        {"0", "18446744073709551615", "\"0\"", "\"+1\"", "\"007\"", "\"18446744073709551615\""}}},
      {"number-or-text", {{"\"\"", "\"x\"", "true", "[]", "{}"}, {"1", "-1.5", "\"1e3\""}}},
      {"uuid",
       {{"1", "\"\"", "\"41fed0925670468bb0457f61a74688e\"",
         "\"41fed0925670468bb0457f61a74688ecc\"", "\"41fed0925670468bb0457f61a74688eg\"", "{}"},
        {"\"41FED0925670468BB0457F61A74688EC\"", "\"00000000000000000000000000000000\"",
         "\"{41fed092-5670-468b-b045-7f61a74688ec}\"",
         "\"urn:uuid:41fed092-5670-468b-b045-7f61a74688ec\""}}},
      {"debug-id",
       {{"1", "\"x\"", "\"68220ae2c65d65c1b6aaa12fa6765a6ec2f5f434\"", "{}"},
        {"\"e20a2268-5dc6-c165-b6aa-a12fa6765a6e-1\"", "\"E20A22685DC6C165B6AAA12FA6765A6E\"",
         "\"00000000-0000-0000-0000-000000000000\""}}},
      {"address",
       {{"1", "\"\"", "\"0x\"", "\"55d0\"", "\"0x1ffffffffffffffff\"", "\"-1\"", "true", "[]"},
        {"\"0X1F\"", "\"4096\"", "\"0xffffffffffffffff\""}}},
      {"time",
       {{"1", "\"\"", "\"2026-01-15\"", "\"2026-01-15T12:00:00\"", "\"2026-13-15T12:00:00Z\"",
         "{}"},
        {"\"2026-01-15 12:00:00.123456789+02:00\"", "\"2026-01-15T12:00:00Z\""}}},
      {"unit",
       {{"\"\"", "\"x\"", "\"Hz\"", "1", "{}"},
        {"\"nanosecond\"", "\"ns\"", "\"hertz\"", "\"hz\"", "\"byte\"", "\"percent\"",
         "\"nanojoule\"", "\"nj\""}}},
      {"object", {{"1", "\"x\"", "true"}, {}}},
      {"list", {{"1", "\"x\"", "true", "{}"}, {"[]"}}},
      {"ignored", {{}, {"1", "\"x\"", "true", "{}", "[]", "{\"x\": [1]}"}}},
  };
  return values;
}

TEST_CASE("The server takes the documents that have every field") {
  for (const char* const kind : {"v1", "v2"}) CHECK_FALSE(is_refused(document_of(kind)));
}

TEST_CASE("A field that is missing, null, of another form or under another name") {
  for (const FieldFacts& field : read_fields()) {
    const std::string text = document_of(field.kind);
    INFO(field.kind << " " << field.path);
    CHECK(is_refused(with_key(text, field.path, "unknown")) == field.is_required);
    CHECK(is_refused(with_value(text, field.path, "null")) == !field.may_be_null);
    const Values& values = values_of_forms().at(field.form);
    for (const std::string& value : values.refused) {
      INFO(value);
      CHECK(is_refused(with_value(text, field.path, value)));
    }
    for (const std::string& value : values.taken) {
      INFO(value);
      CHECK_FALSE(is_refused(with_value(text, field.path, value)));
    }
    const std::string key = field.path.substr(field.path.rfind('/') + 1);
    CHECK(is_refused(with_both_keys(text, field.path, key)) == (field.form != "ignored"));
    if (field.alias.empty()) continue;
    CHECK_FALSE(is_refused(with_key(text, field.path, field.alias)));
    CHECK(is_refused(with_both_keys(text, field.path, field.alias)));
  }
}

bool refuses(std::string_view rule) {
  return !rule.empty() && sentry::find_rule(rule)->relay == sentry::RelayEffect::Refuses;
}

using Visit = std::function<void(const std::string& path, const sentry::Field& field)>;

void walk(const sentry::Shape& shape, const std::string& path, const Visit& visit) {
  for (const sentry::Field& field : shape.fields) {
    const std::string here = path + "/" + std::string(field.key);
    visit(here, field);
    if (field.shape == nullptr) continue;
    const bool is_list = field.form == sentry::Form::List;
    const bool is_map = field.form == sentry::Form::Map;
    walk(*field.shape, here + (is_list ? "/0" : is_map ? "/*" : ""), visit);
  }
}

TEST_CASE("The field tables say of each field what is known of it, and have no others") {
  std::map<std::string, FieldFacts> known;
  for (const FieldFacts& field : read_fields()) known[field.kind + field.path] = field;
  const auto check = [&](const std::string& kind, const sentry::Shape& shape) {
    walk(shape, "", [&](const std::string& path, const sentry::Field& field) {
      INFO(kind << " " << path);
      const auto found = known.find(kind + path);
      CHECK(found != known.end());
      if (found == known.end()) return;
      CHECK(refuses(field.missing) == found->second.is_required);
      CHECK(refuses(field.null) == !found->second.may_be_null);
      CHECK(field.alias == found->second.alias);
      CHECK(field.is_known_to_server == (found->second.form != "ignored"));
      known.erase(found);
    });
  };
  check("v1", sentry::kV1Shape);
  check("v2", sentry::kV2Shape);
  for (const auto& [name, field] : known) {
    INFO("in the list only: " << name);
    CHECK(field.path.empty());
  }
}

}  // namespace
}  // namespace sentry_prof
