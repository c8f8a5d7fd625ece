// Names of files in a spool: whoever may write to the folder may name them. What is taken for ours
// is the one spelling of what it says, and a name made of any numbers is read back.
#include "fuzz/require.h"
#include "upload/spool_name.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

using namespace sentry_prof::upload;
using sentry_prof::fuzz::require;

namespace {

SpoolName name_of(const uint8_t* bytes, size_t size) {
  uint64_t numbers[4] = {};
  std::memcpy(numbers, bytes, std::min(size, sizeof numbers));
  const uint8_t rest = size > sizeof numbers ? bytes[sizeof numbers] : 0;
  SpoolName name;
  name.kept_unix_ns = numbers[0];
  name.number = numbers[1];
  name.identity = numbers[2];
  name.checksum = numbers[3];
  name.categories = Category::ProfileChunk;
  if ((rest & 1) != 0) name.categories = name.categories | Category::Transaction;
  if ((rest & 2) != 0) name.categories = name.categories | Category::Profile;
  if ((rest & 4) != 0) name.categories = name.categories | Category::ProfileChunkUi;
  if ((rest & 8) != 0) name.encoding = BodyEncoding::Gzip;
  if ((rest & 16) != 0) name.encoding = BodyEncoding::Zstd;
  return name;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto name = parse_spool_name(text)) {
    require(to_text(*name) == text);
    require(text.find('/') == text.npos && text.find('\0') == text.npos);
  }
  const SpoolName made = name_of(bytes, size);
  const auto read = parse_spool_name(to_text(made));
  require(read && *read == made);
  return 0;
}
