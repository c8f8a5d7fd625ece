#include "sampling/perf_rings.h"

#include "os/errors.h"
#include "sampling/perf_open.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace sentry_prof::sampling {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr uint64_t kMinWanted_bytes = 512 * kKiB, kMaxWanted_bytes = 16 * kMiB;
constexpr uint64_t kMaxTotal_bytes = 64 * kMiB;
// Two of the largest records.
constexpr uint64_t kMinRing_bytes = 128 * kKiB;

size_t page_bytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

Error locked_memory_error(int error_number, size_t cpus) {
  return {
      ErrorCode::LimitExceeded,
      fmt::format("no memory for ring buffers: {} CPUs need {} KiB each, and mmap says {}. Raise "
                  "sysctl kernel.perf_event_mlock_kb or ulimit -l, or run as root",
                  cpus, kMinRing_bytes / kKiB, os::describe_errno(error_number))};
}

bool is_memory_limit(int error_number) { return error_number == EPERM || error_number == ENOMEM; }

// The error is the errno of the ring that could not be opened.
tl::expected<std::vector<PerfRing>, int> try_open_rings(std::span<const int> cpus,
                                                        uint64_t ring_bytes) {
  std::vector<PerfRing> rings;
  for (int cpu : cpus) {
    auto ring = PerfRing::open(cpu, ring_bytes);
    if (ring) {
      rings.push_back(std::move(*ring));
    } else if (ring.error() != ENODEV) {  // ENODEV: went offline
      return tl::unexpected<int>(ring.error());
    }
  }
  return rings;
}

}  // namespace

uint64_t wanted_ring_bytes(uint32_t frequency_hz, uint32_t stack_bytes, size_t cpus) {
  constexpr uint64_t kOtherRecord_bytes = 512;  // registers, and the side band's share
  const uint64_t per_quarter_second =
      uint64_t{frequency_hz} * (uint64_t{stack_bytes} + kOtherRecord_bytes) / 4;
  const uint64_t wanted = std::clamp(per_quarter_second, kMinWanted_bytes, kMaxWanted_bytes);
  const uint64_t share = kMaxTotal_bytes / std::max<size_t>(cpus, 1);
  return std::max(kMinRing_bytes, std::bit_floor(std::min(std::bit_ceil(wanted), share)));
}

tl::expected<PerfRing, int> PerfRing::open(int cpu, uint64_t ring_bytes) {
  // Three quarters: a quarter is left for the time until we run.
  const auto watermark = static_cast<uint32_t>(ring_bytes / 4 * 3);
  os::Fd event = open_event(ring_owner_attr(watermark), 0, cpu);
  if (!event.is_open()) return tl::unexpected<int>(errno);
  const size_t mapped_bytes = page_bytes() + static_cast<size_t>(ring_bytes);
  void* page = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event.get(), 0);
  if (page == MAP_FAILED) return tl::unexpected<int>(errno);
  return PerfRing(cpu, std::move(event), static_cast<perf_event_mmap_page*>(page), mapped_bytes);
}

PerfRing::PerfRing(PerfRing&& other) noexcept
    : cpu_(other.cpu_),
      event_(std::move(other.event_)),
      page_(std::exchange(other.page_, nullptr)),
      mapped_bytes_(other.mapped_bytes_) {}

PerfRing::~PerfRing() {
  if (page_ != nullptr) ::munmap(page_, mapped_bytes_);
}

Bytes PerfRing::data() const {
  const auto* begin = reinterpret_cast<const std::byte*>(page_) + page_bytes();
  return {begin, mapped_bytes_ - page_bytes()};
}

// Acquire: the records before the head are read only after the head.
uint64_t PerfRing::load_head() const {
  return __atomic_load_n(&page_->data_head, __ATOMIC_ACQUIRE);
}

// Only we write the tail.
uint64_t PerfRing::load_tail() const {
  return __atomic_load_n(&page_->data_tail, __ATOMIC_RELAXED);
}

// Release: the kernel may overwrite only after we have read.
void PerfRing::store_tail(uint64_t tail) {
  __atomic_store_n(&page_->data_tail, tail, __ATOMIC_RELEASE);
}

void PerfRing::pause() { ::ioctl(event_.get(), PERF_EVENT_IOC_PAUSE_OUTPUT, 1); }

Result<std::vector<PerfRing>> open_rings(std::span<const int> cpus, uint64_t ring_bytes) {
  for (;; ring_bytes /= 2) {
    auto rings = try_open_rings(cpus, ring_bytes);
    if (rings) return std::move(*rings);
    if (!is_memory_limit(rings.error())) {
      return os::fail_with_errno(rings.error(), "opening the ring buffers");
    }
    if (ring_bytes <= kMinRing_bytes) {
      return tl::unexpected<Error>(locked_memory_error(rings.error(), cpus.size()));
    }
  }
}

}  // namespace sentry_prof::sampling
