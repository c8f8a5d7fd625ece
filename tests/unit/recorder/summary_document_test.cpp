// docs/summary.md has every key of --summary, and no other.
#include "base/json_reader.h"
#include "recorder/summary.h"
#include "support/catch2.h"

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

using namespace sentry_prof;
using namespace sentry_prof::recorder;

namespace {

using Keys = std::set<std::string>;

void add_keys(JsonReader& reader, Keys& keys) {
  if (reader.peek() == JsonKind::Array) {
    reader.begin_array();
    while (reader.next_element()) reader.skip_value();
    return;
  }
  if (reader.peek() != JsonKind::Object) return reader.skip_value();
  reader.begin_object();
  for (JsonString key; reader.next_member(key);) {
    std::string buffer;
    keys.emplace(key.text(buffer));
    add_keys(reader, keys);
  }
}

Keys keys_of(const RunFigures& figures) {
  const std::string json = summary_json(figures, {});
  JsonReader reader(json);
  Keys keys;
  add_keys(reader, keys);
  REQUIRE_FALSE(reader.failed());
  return keys;
}

// Of the first column of the tables, each in backticks.
Keys keys_of_document() {
  std::ifstream file(SENTRY_PROF_DOCS "/summary.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Keys keys;
  const std::regex row("\\n\\| (`[^|]*) \\|"), key("`([^`]*)`");
  for (std::sregex_iterator r(text.begin(), text.end(), row), none; r != none; ++r) {
    const std::string cell = r->str(1);
    for (std::sregex_iterator k(cell.begin(), cell.end(), key); k != none; ++k) {
      keys.insert(k->str(1));
    }
  }
  return keys;
}

}  // namespace

TEST_CASE("Every key of --summary is documented, and no other") {
  RunFigures figures;
  figures.uploads.emplace();
  Keys live = keys_of(figures);
  figures.is_converted = true;
  const Keys written = keys_of(figures);
  Keys documented = keys_of_document();
  documented.insert("uploads");  // has a table of its own
  CHECK(documented == written);
  CHECK(written.contains("ring_full"));
  live.insert("records_skipped");
  CHECK(live == written);
}
