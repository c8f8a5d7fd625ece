#include "recorder/figures.h"

#include <numeric>

#include <fmt/format.h>

namespace sentry_prof::recorder {

std::string_view name_of(Loss loss) {
  switch (loss) {
    case Loss::RingFull:
      return "ring_full";
    case Loss::Undecodable:
      return "undecodable";
    case Loss::Duplicate:
      return "duplicate";
    case Loss::OutsideProcess:
      return "outside_process";
    case Loss::NoUserRegisters:
      return "no_user_registers";
    case Loss::UnsupportedAbi:
      return "unsupported_abi";
    case Loss::DuringExec:
      return "during_exec";
    case Loss::UnmappedPc:
      return "unmapped_pc";
    case Loss::ChunkTooSmall:
      return "chunk_too_small";
    case Loss::ChunkNotWritten:
      return "chunk_not_written";
    case Loss::ChunkQueueFull:
      return "chunk_queue_full";
  }
  return "unknown";
}

std::string_view describe(Loss loss) {
  switch (loss) {
    case Loss::RingFull:
      return "the kernel's buffers were full";
    case Loss::Undecodable:
      return "the kernel's record could not be read";
    case Loss::Duplicate:
      return "taken twice of a thread that was born while attaching";
    case Loss::OutsideProcess:
      return "of new processes (--no-children)";
    case Loss::NoUserRegisters:
      return "the thread had no user state (about to exit, or the kernel's own, as io_uring has)";
    case Loss::UnsupportedAbi:
      return "of 32-bit code, which is not supported";
    case Loss::DuringExec:
      return "taken in exec, between two programs";
    case Loss::UnmappedPc:
      return "taken at an address where no code is known to be mapped";
    case Loss::ChunkTooSmall:
      return "in chunks without two samples on one thread, which Sentry refuses "
             "(profiling_not_enough_samples)";
    case Loss::ChunkNotWritten:
      return "in chunks that could not be written";
    case Loss::ChunkQueueFull:
      return "in chunks that were dropped because writing hangs";
  }
  return "unknown";
}

uint64_t RunFigures::samples_complete() const {
  return sample.walk_ends[static_cast<size_t>(unwind::WalkEnd::Root)];
}

uint64_t RunFigures::samples_truncated() const {
  return sample.walk_ends[static_cast<size_t>(unwind::WalkEnd::StackTruncated)];
}

uint64_t RunFigures::samples_failed() const {
  const auto& ends = sample.walk_ends;
  return std::accumulate(ends.begin(), ends.end(), uint64_t{0}) - samples_complete() -
         samples_truncated();
}

uint64_t RunFigures::samples_lost() const { return sample.loss(Loss::RingFull); }

uint64_t RunFigures::losses_total() const {
  return std::accumulate(sample.losses.begin(), sample.losses.end(), uint64_t{0});
}

uint64_t RunFigures::target_cpu_ns() const {
  return sampler.on_cpu_ns != 0 ? sampler.on_cpu_ns : sample.on_cpu_ns;
}

double RunFigures::effective_hz() const {
  if (target_cpu_ns() == 0) return 0;
  return static_cast<double>(sampler.sample_records) * 1e9 / static_cast<double>(target_cpu_ns());
}

std::string RunFigures::broken_law() const {
  const uint64_t seen = sampler.sample_records + samples_lost();
  const uint64_t accounted = samples_written + losses_total();
  if (seen == accounted) return {};
  return fmt::format("{} records seen + {} lost, {} samples written + {} named losses",
                     sampler.sample_records, samples_lost(), samples_written, losses_total());
}

}  // namespace sentry_prof::recorder
