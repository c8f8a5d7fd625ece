// What became of every record: the law of counting.
//
//   sample records seen + samples lost in the kernel = samples in the profile + sum of named losses
#pragma once

#include "sampling/sampler.h"
#include "unwind/walk.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::recorder {

// Every way in which a sample does not reach the profile.
enum class Loss : uint8_t {
  RingFull,         // the kernel found no room in the ring
  Undecodable,      // breaks its own format; an unreadable rest of a ring counts as one sample
  Duplicate,        // a thread born during the attach was sampled twice
  OutsideProcess,   // of a new process, where children are not followed
  NoUserRegisters,  // a kernel thread, or a task past the end of its user life
  UnsupportedAbi,   // a 32-bit task
  DuringExec,       // the registers are of the program before exec, whose memory is gone
  UnmappedPc,       // the interrupted pc lies in no executable mapping that is known
  ChunkTooSmall,    // its chunk would have been refused: fewer than two samples on every thread
  ChunkNotWritten,  // its chunk could not be written
  ChunkQueueFull,   // writing was so slow that its chunk had to be dropped
};
inline constexpr size_t kLossCount = 11;
std::string_view name_of(Loss loss);
// What happened, in words that finish "lost 7 samples: ".
std::string_view describe(Loss loss);

// Counted by the recording thread.
struct SampleFigures {
  std::array<uint64_t, kLossCount> losses{};
  std::array<uint64_t, unwind::kWalkEndCount> walk_ends{};
  std::array<uint64_t, unwind::kFrameOriginCount> frames_by_origin{};
  uint64_t samples = 0;  // for a chunk, with a stack
  uint64_t idle_markers = 0;
  // In the chunk, by what completed their stacks (CompletedBy): LiveStack or LeftStack, LastWhole
  // or NextWhole, OuterStack. And these frames.
  uint64_t samples_with_live_frames = 0;
  uint64_t live_frames = 0;
  uint64_t samples_with_joined_frames = 0;
  uint64_t joined_frames = 0;
  uint64_t samples_with_outer_stacks = 0;
  // Deeper than their copies, of threads for which the rest was copied, too, but not enough of it.
  uint64_t outer_stacks_missed = 0;
  // Of deep recursion the frames in the middle are not kept (unwind::kMaxFrames).
  uint64_t samples_with_frames_left_out = 0;
  uint64_t frames_left_out = 0;
  uint64_t samples_with_jit_frames = 0;  // in executable memory without an image
  uint64_t frames_without_place = 0;     // there, beyond AnonymousRegions::kMaxRegions
  // That end for want of unwind information: in files of which nothing but the name is known, and
  // in memory that no file holds.
  uint64_t samples_ending_in_unread_files = 0;
  uint64_t samples_ending_outside_files = 0;
  uint64_t cut_copies = 0;   // samples whose stack was deeper than its copy, completed or not
  uint64_t clock_steps = 0;  // Recording::on_clock_step()
  uint64_t on_cpu_ns = 0;    // of all threads, by their switch records; see target_cpu_ns()

  uint64_t& loss(Loss which) { return losses[static_cast<size_t>(which)]; }
  uint64_t loss(Loss which) const { return losses[static_cast<size_t>(which)]; }
};

struct HotFunction {
  std::string function;
  std::string code_file;
  uint64_t samples = 0;  // in which it was the leaf
};

// What became of the envelopes of a recording that uploads, transactions among them; those that an
// earlier run left in the same spool count, too.
struct UploadFigures {
  uint64_t accepted = 0;
  uint64_t refused = 0;  // by the server, for good
  uint64_t dropped = 0;  // from memory, since there were too many
  uint64_t dropped_for_age = 0;
  uint64_t dropped_for_size = 0;
  uint64_t set_aside = 0;  // damaged
  uint64_t not_kept = 0;   // that the spool's disk did not take, and memory took
  uint64_t left_in_spool = 0;
  uint64_t unsent_files = 0;
  uint64_t lost = 0;  // not sent, and not kept anywhere
};

// Frames in code that was compiled while the target ran, each counted once a chunk.
struct JitFigures {
  uint64_t frames = 0;
  uint64_t frames_named = 0;  // by the process's JIT map
  // Every chunk reads the maps anew: of the one that has most.
  uint64_t bad_map_lines = 0;  // that are not of the form
  uint64_t maps_cut = 0;       // too large to be read or compared whole

  void add_chunk(const JitFigures& chunk) {
    frames += chunk.frames;
    frames_named += chunk.frames_named;
    bad_map_lines = std::max(bad_map_lines, chunk.bad_map_lines);
    maps_cut = std::max(maps_cut, chunk.maps_cut);
  }
};

// What a whole run was; the source of the printed summary and of --summary.
struct RunFigures {
  SampleFigures sample;
  sampling::SamplerStats sampler;
  sampling::SamplerSetup setup;
  unwind::UnwinderStats unwinder;
  uint64_t unwind_ns = 0;                 // in walks
  uint64_t samples_written = 0;           // with a stack, in written chunks
  uint64_t samples_of_short_threads = 0;  // of these, those that Sentry drops
  uint64_t idle_markers_written = 0;
  uint32_t chunks_written = 0;
  uint32_t chunks_too_small = 0;
  uint32_t chunks_not_written = 0;
  std::vector<std::string> write_errors;
  std::vector<std::string> image_problems;
  std::vector<HotFunction> hottest;  // most samples first
  JitFigures jit;
  uint64_t symbol_tables_cut = 0;       // of the chunk that has most: symbols::SymbolBudget
  uint64_t names_left_mangled = 0;      // likewise
  bool looks_for_jit_maps = false;      // not in a replay, nor of another machine's perf.data
  size_t state_forgotten = 0;           // ProcessTable::forgotten_count()
  uint64_t code_pages_not_read = 0;     // of code that no file holds: CodeInMemory
  uint64_t memory_reads_given_up = 0;   // of such code, and of deep stacks: ProcessMemoryReader
  uint64_t file_requests_given_up = 0;  // target::TargetFiles
  uint64_t command_cpu_ns = 0;          // by the kernel's accounting; 0: not known, or no command
  bool target_is_stopped = false;       // all that was attached to, when the recording ended
  size_t threads = 0;                   // that were seen
  size_t processes = 0;
  size_t images = 0;
  size_t images_with_debug_cfi = 0;  // ImageStore::images_with_debug_cfi()
  double duration_s = 0;
  uint32_t requested_hz = 0;
  double profiler_cpu_s = 0;
  uint64_t profiler_peak_rss_bytes = 0;

  std::optional<UploadFigures> uploads;  // with --upload
  // Made of another profiler's file: advice is on its options.
  bool is_converted = false;
  std::string nothing_to_convert;                   // why that has no sample
  std::vector<std::string> notes;                   // more for notes_of(), of the source
  std::map<std::string, uint64_t> records_skipped;  // that say nothing of stacks, by name

  uint64_t samples_complete() const;
  uint64_t samples_truncated() const;  // the walk ended where the copied stack did
  uint64_t samples_failed() const;     // the walk ended early for another cause, or found nothing
  uint64_t samples_lost() const;       // by the kernel
  uint64_t losses_total() const;
  // CPU time that the target's threads used while they were sampled. By the sampling events, or by
  // switch records where there are none (a replay): those miss the time around each switch, which
  // is a fifth of a server that works for 10 us at a time.
  uint64_t target_cpu_ns() const;
  // Samples taken per second of that; 0 if it is not known.
  double effective_hz() const;
  // Empty if the law holds; else both sides of it.
  std::string broken_law() const;
};

}  // namespace sentry_prof::recorder
