// Writes a raw log while recording.
#pragma once

#include "os/atomic_file.h"
#include "os/process_memory.h"
#include "recorder/raw_log.h"

#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace sentry_prof::recorder {

// Errors of writing are kept until commit(): recording goes on without the log. Any thread.
class RawLogWriter final : public sampling::RecordTap {
 public:
  // As AtomicFile::create(). The file is there after commit(). Nothing is buffered: if this program
  // crashes, all up to the record at fault is in the temporary file, and can be replayed.
  static Result<std::unique_ptr<RawLogWriter>> create(const std::string& path);

  void on_session(const RawSession& session) { add(RawEntry::Session, encode(session)); }
  void on_record(uint64_t time_ns, sampling::RecordFate fate, Bytes record,
                 std::span<const StackPiece> outer_stack) override {
    for (const StackPiece& piece : outer_stack) {
      add(RawEntry::OuterStack, encode_outer_stack(piece));
    }
    add(RawEntry::Record, encode_record(time_ns, fate, record));
  }
  void on_time(uint64_t time_ns) { add(RawEntry::Time, encode_time(time_ns)); }
  void on_clock_step(uint64_t time_ns, const profile::ClockAnchor& clock) {
    add(RawEntry::ClockStep, encode_clock_step(time_ns, clock));
  }
  void on_snapshot(const Result<target::ProcessSnapshot>& snapshot) {
    add(RawEntry::Snapshot, encode(snapshot));
  }
  void on_reread(const Result<target::ProcessSnapshot>& snapshot) {
    add(RawEntry::Reread, encode(snapshot));
  }
  void on_memory(uint64_t time_ns, std::span<const os::MemoryRange> ranges) {
    for (const os::MemoryRange& range : ranges) {
      add(RawEntry::LiveMemory,
          encode_memory(time_ns, range.address, range.out.first(range.got_bytes)));
    }
  }
  void on_end(const RawEnd& end) { add(RawEntry::End, encode(end)); }

  // The opener that asks `inner` and keeps what it answers, and what is read of the files. The
  // writer must outlive it and its files.
  std::unique_ptr<target::ImageOpener> wrap(std::unique_ptr<target::ImageOpener> inner);
  void add(RawEntry type, const std::string& payload);

  Result<void> commit();

 private:
  explicit RawLogWriter(os::AtomicFile file) : file_(std::move(file)) {}
  void write(const std::string& bytes);

  std::mutex mutex_;
  os::AtomicFile file_;
  Result<void> status_;
};

}  // namespace sentry_prof::recorder
