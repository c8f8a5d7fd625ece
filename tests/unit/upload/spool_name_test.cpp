#include "upload/spool_name.h"

#include "support/catch2.h"

#include <string>

using namespace sentry_prof::upload;

namespace {

SpoolName example() {
  SpoolName name;
  name.kept_unix_ns = 0x18a1;
  name.number = 2;
  name.identity = 0xffffffffffffffff;
  name.checksum = 0xabc;
  name.categories = Category::Profile | Category::Transaction;
  name.encoding = BodyEncoding::Gzip;
  return name;
}

const std::string kExample =
    "00000000000018a1-0000000000000002-ffffffffffffffff-0000000000000abc.pt.gz.envelope";

}  // namespace

TEST_CASE("A name in the spool says what the file holds", "[spool_name]") {
  CHECK(to_text(example()) == kExample);
  CHECK(parse_spool_name(kExample) == example());
  for (const BodyEncoding encoding :
       {BodyEncoding::Identity, BodyEncoding::Gzip, BodyEncoding::Zstd}) {
    SpoolName name = example();
    name.encoding = encoding;
    name.categories = Categories::all();
    CHECK(parse_spool_name(to_text(name)) == name);
    name.destination = 0xdef;
    CHECK(to_text(name).find("abc-0000000000000def.") != std::string::npos);
    CHECK(parse_spool_name(to_text(name)) == name);
  }
}

TEST_CASE("Any other name is foreign", "[spool_name]") {
  for (const std::string& name :
       {std::string(), std::string("."), std::string("notes.envelope"), kExample + ".bad",
        "." + kExample, kExample.substr(1), kExample.substr(0, kExample.size() - 1)}) {
    INFO(name);
    CHECK_FALSE(parse_spool_name(name));
  }
  const std::string numbers = kExample.substr(0, kExample.find('.'));
  for (const char* destination :
       {"-", "-0000000000000000", "-000000000000000", "-g000000000000000"}) {
    CHECK_FALSE(parse_spool_name(numbers + destination + ".pt.gz.envelope"));
  }
  for (const char* ending :
       {"", ".", ".envelope", "..envelope", ".pt", ".tp.envelope", ".pp.envelope", ".x.envelope",
        ".p.gzip.envelope", ".p.gz.zst.envelope", ".p.envelope/..", ".p/.envelope"}) {
    INFO(ending);
    CHECK_FALSE(parse_spool_name(numbers + ending));
  }
  for (const char digit : {'F', 'g', '-', '+', ' ', '/', '\0'}) {
    std::string wrong = kExample;
    wrong[3] = digit;
    CHECK_FALSE(parse_spool_name(wrong));
  }
}

TEST_CASE("The checksum is FNV-1a", "[spool_name]") {
  CHECK(checksum_of("") == 0xcbf29ce484222325);
  CHECK(checksum_of("a") == 0xaf63dc4c8601ec8c);
  CHECK(checksum_of("foobar") == 0x85944171f73967e8);
}
