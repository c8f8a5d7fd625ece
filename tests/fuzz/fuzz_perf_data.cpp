// A perf.data file of any bytes, which somebody was sent: both readings of it.
#include "formats/perf_data.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <variant>

using namespace sentry_prof;

namespace {

// zstd makes 30 KB of a byte; here an input must not take seconds.
constexpr uint64_t kMaxExpanded_bytes = uint64_t{8} << 20;

// Touches every byte that an event refers to.
class TouchingSink final : public sampling::EventSink {
 public:
  void on_event(const sampling::Event& event) override {
    if (event.time_ns < last_time_ns_) std::abort();
    last_time_ns_ = event.time_ns;
    std::visit([this](const auto& body) { touch(body); }, event.body);
  }
  uint64_t samples() const { return samples_; }
  uint8_t sum() const { return sum_; }

 private:
  void touch(const sampling::SampleEvent& sample) {
    ++samples_;
    for (const std::byte byte : sample.stack) sum_ ^= static_cast<uint8_t>(byte);
    for (const std::byte byte : sample.registers.words) sum_ ^= static_cast<uint8_t>(byte);
  }
  void touch(const sampling::MapEvent& map) {
    if (map.build_id_size_bytes > map.build_id.size()) std::abort();
    for (const char c : map.path) sum_ ^= static_cast<uint8_t>(c);
  }
  void touch(const sampling::CommEvent& comm) {
    for (const char c : comm.name) sum_ ^= static_cast<uint8_t>(c);
  }
  void touch(const auto&) {}

  uint64_t last_time_ns_ = 0;
  uint64_t samples_ = 0;
  uint8_t sum_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const MemoryByteSource file(std::vector<std::byte>(begin, begin + size));
  const auto perf_data = formats::PerfData::open(file, kMaxExpanded_bytes);
  if (!perf_data) return 0;
  TouchingSink sink;
  const auto figures = perf_data->play(sink);
  // What the first reading took, the second does.
  if (!figures) std::abort();
  if (figures->stats.sample_records != sink.samples() + figures->stats.undecodable_samples) {
    std::abort();
  }
  if (sink.sum() != 0 && sink.samples() == UINT64_MAX) std::abort();  // uses what was touched
  return 0;
}
