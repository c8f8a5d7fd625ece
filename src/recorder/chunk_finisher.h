// The second thread: names, places and writes chunks while recording goes on.
#pragma once

#include "os/priority.h"
#include "profile/chunk_builder.h"
#include "profile/finish_chunk.h"
#include "recorder/chunk_sink.h"
#include "recorder/figures.h"
#include "recorder/image_catalog.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sentry_prof::recorder {

struct ChunkJob {
  profile::RawChunk chunk;
  ChunkImages images;
  Session session;
  profile::ClockAnchor clock;
  uint32_t main_pid = 0;
  std::vector<uint32_t> forgotten_images;  // neither this chunk nor a later one has these
};

// What became of the chunks.
struct FinishedFigures {
  uint64_t samples_written = 0;
  uint64_t samples_of_short_threads = 0;  // of these
  uint64_t idle_markers_written = 0;
  uint32_t chunks_written = 0;
  uint32_t chunks_not_written = 0;
  uint32_t chunks_too_small = 0;
  uint64_t samples_too_small = 0;
  uint64_t samples_not_written = 0;
  std::vector<std::string> write_errors;  // no more than ChunkFinisher::kMaxWriteErrors
  std::vector<HotFunction> hottest;
  JitFigures jit;
  uint64_t symbol_tables_cut = 0;
  uint64_t names_left_mangled = 0;
};

class ChunkFinisher {
 public:
  // A minute's chunk is finished in milliseconds; a backlog of this many means that the sink hangs.
  static constexpr size_t kMaxQueued = 8;
  // Functions that are remembered for "the five hottest"; rarer ones of a long run are forgotten.
  static constexpr size_t kMaxHotFunctions = 100'000;
  // Different ones, but for numbers in them: a full disk fails every chunk of a long run in the
  // same way.
  static constexpr size_t kMaxWriteErrors = 10;

  // The second thread runs with `priority`, whatever the calling one has, and calls `tidy_up`,
  // which may be empty, behind each chunk. LimitExceeded if no thread can be started.
  static Result<std::unique_ptr<ChunkFinisher>> start(ChunkSink& sink,
                                                      const os::ThreadPriority& priority,
                                                      std::function<void()> tidy_up = {});
  ~ChunkFinisher();

  // Recording thread. False if the queue is full; the job is left alone then, and the sink is told
  // once it answers.
  bool submit(ChunkJob&& job);
  // For who can wait: whether submit() would take a job, within that time.
  bool has_room_within(uint64_t wait_ns);
  // Whether the sink said that it is broken.
  bool sink_is_broken() const { return sink_is_broken_; }

  // No more jobs. True once all are written, false after `wait_ns`; call again then.
  bool is_finished_within(uint64_t wait_ns);
  // After is_finished_within said true.
  FinishedFigures take_figures();

 private:
  ChunkFinisher(ChunkSink& sink, std::function<void()> tidy_up)
      : sink_(sink), tidy_up_(std::move(tidy_up)) {}
  void run();
  bool write(const Profile& profile, uint64_t samples);
  void note_error(const std::string& message);
  void tell_of_drop();
  void process(ChunkJob job);
  Profile finish(ChunkJob job);
  void count_leaves(const Profile& profile);
  void forget_rare_leaves();
  void sort_hottest();

  ChunkSink& sink_;
  std::function<void()> tidy_up_;
  profile::ImagePlacer placer_;
  uint32_t chunks_handed_on_ = 0;  // to the sink
  FinishedFigures figures_;
  bool is_failing_ = false;  // the last chunk was not written
  uint64_t told_at_ns_ = 0;  // when the sink was told of an error last
  uint64_t drop_told_at_ns_ = 0;
  std::map<std::pair<std::string, std::string>, uint64_t> leaves_;  // function, code file

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<ChunkJob> queue_;
  bool is_ending_ = false;
  bool is_finished_ = false;
  std::atomic<bool> sink_is_broken_ = false;
  std::atomic<bool> was_dropped_ = false;  // a chunk, since that was told
  std::thread thread_;
};

}  // namespace sentry_prof::recorder
