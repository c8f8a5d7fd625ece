// A raw log of any bytes, which somebody was sent: reading it, opening its files and playing it.
#include "recorder/raw_log.h"
#include "recorder/replay.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace sentry_prof;

namespace {

class NoSink final : public recorder::ChunkSink {
 public:
  Result<void> write(const Profile&, uint32_t) override { return {}; }
};

// Every entry takes eight bytes of its own.
bool is_in_proportion(const recorder::RawLog& log, size_t size) {
  size_t blocks = 0;
  for (const recorder::RawFile& file : log.files) blocks += file.blocks.size();
  return (log.steps.size() + log.files.size() + blocks) * 8 <= size;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto log = recorder::read_raw_log(bytes);
  if (!log) return 0;
  if (!is_in_proportion(*log, size)) std::abort();
  NoSink sink;
  const auto figures = recorder::replay(*log, {}, sink);
  if (figures && !log->end && figures->sampler.records > log->steps.size()) std::abort();
  return 0;
}
