// A recording that is fed by hand: no kernel, no target, no clock.
#pragma once

#include "base/time_units.h"
#include "recorder/recording.h"
#include "sentry_prof/limits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace sentry_prof::recorder_test {

using namespace recorder;
using namespace sampling;

constexpr uint32_t kPid = 100;
// Anonymous executable memory: frames are found by frame pointers, no file is opened.
constexpr uint64_t kCode = 0x10000;
constexpr uint64_t kCode_bytes = 0x1000;
constexpr std::byte kNop{0x90};
constexpr uint64_t kStack = 0x7000'0000;
constexpr uint64_t kCopiedRecords = unwind::kFramesInCommon + 1;
// PERF_REG_X86_BP, SP, IP.
constexpr uint64_t kRegisterMask = (1 << 6) | (1 << 7) | (1 << 8);

// Nothing to open but what a test puts there.
class FewFiles final : public target::ImageOpener {
 public:
  Result<std::shared_ptr<const ByteSource>> open(const target::MappingFacts& mapping) override {
    const auto found = files.find(mapping.path);
    if (found == files.end()) return fail(code, "no such file here");
    return std::make_shared<MemoryByteSource>(found->second);
  }
  Result<std::shared_ptr<const ByteSource>> open_by_path(const target::MappingFacts& m) override {
    return open(m);
  }
  Result<std::shared_ptr<const ByteSource>> open_mapped(
      const target::MappingFacts& /*mapping*/) override {
    return fail(ErrorCode::Gone, "its process has ended");
  }
  ErrorCode code = ErrorCode::NotFound;  // of all else
  std::map<std::string, std::vector<std::byte>> files;
};

class KeepingSink final : public ChunkSink {
 public:
  Result<void> write(const Profile& profile, uint32_t number) override {
    if (before_write) before_write(number);
    if (is_broken) return fail(ErrorCode::Io, fmt::format("chunk {}: the disk is full", number));
    profiles.push_back(profile);
    return {};
  }
  void on_loss(const std::string& message) override { losses.push_back(message); }
  std::vector<Profile> profiles;
  std::vector<std::string> losses;
  std::function<void(uint32_t)> before_write;  // on the finishing thread
  std::atomic<bool> is_broken = false;
};

struct RecordingFixture {
  explicit RecordingFixture(uint64_t chunk_ns = 60 * kNsPerSecond, bool can_read = true,
                            uint64_t first_chunk_slack_ns = 0) {
    RecordingOptions options;
    options.chunk_ns = chunk_ns;
    options.first_chunk_slack_ns = first_chunk_slack_ns;
    options.max_chunk_json_bytes = limits::kMaxItem_bytes;
    options.frequency_hz = 100;
    options.register_mask = kRegisterMask;
    options.main_pid = kPid;
    if (can_read) {
      options.read_memory = [this](const MemoryRequest&, std::span<os::MemoryRange> ranges) {
        ++reads;
        for (os::MemoryRange& range : ranges) read_live(range);
        return read_time_ns;
      };
    }
    options.reread_process = [this](uint32_t pid) -> Result<target::ProcessSnapshot> {
      ++rereads;
      if (!reread) return fail(ErrorCode::Gone, "it has ended");
      return reread(pid);
    };
    options.follow_outer_stack = [this](uint32_t, uint32_t tid, uint64_t end) {
      followed.emplace_back(tid, end);
    };
    options.find_jit_map = [this](uint32_t pid, uint64_t program_begin_ns) {
      last_program_begin_ns = program_begin_ns;
      return find_jit_map(pid);
    };
    options.is_gone = [this](uint32_t pid) { return gone.contains(pid); };
    options.now_ns = [this] { return now_ns.value_or(last_sample_ns); };
    recording.emplace(std::move(options), processes, images, *finisher, 1 * kNsPerSecond);
    map_code(1 * kNsPerSecond, kCode);
    recording->on_event({1 * kNsPerSecond, CommEvent{kPid, kPid, false, "worker"}});
  }

  void map_code(uint64_t time_ns, uint64_t begin) {
    MapEvent map;
    map.pid = map.tid = kPid;
    map.begin = {begin};
    map.size_bytes = kCode_bytes;
    map.path = "//anon";
    recording->on_event({time_ns, map});
  }

  // A thread interrupted at `pc`, called from kCode + 0x100 by way of the frame pointer.
  void sample(uint64_t time_ns, uint64_t pc = kCode + 8, uint32_t tid = kPid) {
    sample_of(kPid, time_ns, pc, tid);
  }

  void sample_of(uint32_t pid, uint64_t time_ns, uint64_t pc, uint32_t tid) {
    const std::array<uint64_t, 3> words = {kStack, kStack, pc};
    const std::array<uint64_t, 2> stack = {0, kCode + 0x100};
    SampleEvent event;
    event.pid = pid;
    event.tid = tid;
    event.registers = {true, false, std::as_bytes(std::span(words))};
    event.stack = std::as_bytes(std::span(stack));
    ++records_seen;
    last_sample_ns = time_ns;
    recording->on_event({time_ns, event});
  }

  // As the kernel takes it while exec has taken down the old program's memory.
  void sample_in_exec(uint64_t time_ns, uint64_t old_pc) {
    const std::array<uint64_t, 3> words = {kStack, kStack, old_pc};
    SampleEvent event;
    event.pid = event.tid = kPid;
    event.registers = {true, false, std::as_bytes(std::span(words))};
    ++records_seen;
    recording->on_event({time_ns, event});
  }

  // Frame records, and the return addresses of the calls that they stand for.
  static std::vector<uint64_t> copied_words() {
    std::vector<uint64_t> words;
    for (uint64_t i = 0; i < kCopiedRecords; ++i) {
      words.insert(words.end(), {kStack + 16 * (i + 1), kCode + 0x100 + i});
    }
    return words;
  }

  // Interrupted in a deeper frame: the copy has kCopiedRecords frame records, and the last one
  // leads to one that begins where it ends.
  void cut_sample(uint64_t time_ns) { cut_sample(time_ns, kStack); }

  // The same stack with all of its frames, the outermost one where the copies end.
  void whole_deep_sample(uint64_t time_ns, uint64_t outermost_pc = kCode + 0x200) {
    const std::vector<uint64_t> short_copy = std::exchange(copy, copied_words());
    copy.insert(copy.end(), {0, outermost_pc});
    cut_sample(time_ns);
    copy = short_copy;
  }

  // A copy that ends before what was asked for.
  void short_sample(uint64_t time_ns) { cut_sample(time_ns, kStack, false); }

  // Interrupted in a frame that is larger than the copy.
  void cut_sample_in_large_frame(uint64_t time_ns) {
    cut_sample(time_ns, kStack + 16 * kCopiedRecords);
  }

  void cut_sample(uint64_t time_ns, uint64_t frame_pointer, bool is_cut = true) {
    const std::array<uint64_t, 3> words = {frame_pointer, kStack, kCode + 8};
    SampleEvent event;
    event.pid = event.tid = kPid;
    event.registers = {true, false, std::as_bytes(std::span(words))};
    event.stack = std::as_bytes(std::span(copy));
    event.stack_is_cut = is_cut;
    const StackPiece outer{{kStack + event.stack.size()}, std::as_bytes(std::span(outer_words))};
    if (!outer_words.empty()) event.outer_stack = std::span(&outer, 1);
    ++records_seen;
    recording->on_event({time_ns, event});
  }

  // What was taken before the process's memory was read has been handed in.
  void next_batch() { recording->on_time(0); }

  // Between two batches: the process's stack is the copied one now, and goes on with `outer`.
  void stack_goes_on_with(const std::vector<uint64_t>& outer) {
    next_batch();
    live_words = copy;
    live_words.insert(live_words.end(), outer.begin(), outer.end());
  }
  void change_inner_half() { change_word(2 * 4 + 1); }
  void change_copied_part() { change_word(2 * kCopiedRecords - 1); }
  void change_word(size_t word) {
    next_batch();
    live_words[word] = kCode + 0x180;
  }
  void end_process() {
    next_batch();
    live_words.clear();
  }

  void read_live(os::MemoryRange& range) const {
    const bool is_code = range.address == kCode;
    const Bytes bytes = is_code ? Bytes(live_code) : std::as_bytes(std::span(live_words));
    const uint64_t offset = is_code ? 0 : range.address - kStack;
    if (offset >= bytes.size()) return;
    range.got_bytes = std::min<size_t>(range.out.size(), bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), range.got_bytes,
                range.out.begin());
  }

  // kCode + 8 goes on with `add $8, %rsp; ret`, and a call ends at kCode + 0x100.
  void put_code_that_returns() {
    constexpr std::array<uint8_t, 5> kTrampolineEnd{0x48, 0x83, 0xc4, 0x08, 0xc3};
    constexpr std::array<uint8_t, 2> kCall{0xff, 0xd0};  // call *%rax
    std::ranges::copy(std::as_bytes(std::span(kTrampolineEnd)), live_code.begin() + 8);
    std::ranges::copy(std::as_bytes(std::span(kCall)), live_code.begin() + 0xfe);
  }

  // Holds the map open as long as somebody has it.
  Result<target::JitMap> find_jit_map(uint32_t pid) {
    if (jit_map_problem) return fail(ErrorCode::PermissionDenied, *jit_map_problem);
    if (!jit_maps.contains(pid)) return fail(ErrorCode::NotFound, "there is none");
    const auto bytes = std::as_bytes(std::span(jit_maps[pid]));
    const auto file =
        std::make_shared<MemoryByteSource>(std::vector<std::byte>(bytes.begin(), bytes.end()));
    return target::JitMap([file, open = open_jit_maps] { return file; });
  }

  void switch_thread(uint64_t time_ns, bool is_out) {
    recording->on_event({time_ns, SwitchEvent{kPid, kPid, is_out}});
  }

  // Ends the run; the figures as Recorder puts them together.
  RunFigures finish(uint64_t end_ns) {
    recording->finish(end_ns);
    while (!finisher->is_finished_within(kNsPerSecond)) continue;
    const FinishedFigures finished = finisher->take_figures();
    RunFigures figures;
    figures.sample = recording->figures();
    figures.sampler.sample_records = records_seen;
    figures.samples_written = finished.samples_written;
    figures.jit = finished.jit;
    figures.chunks_written = finished.chunks_written;
    figures.chunks_not_written = finished.chunks_not_written;
    figures.write_errors = finished.write_errors;
    figures.hottest = finished.hottest;
    figures.sample.loss(Loss::ChunkTooSmall) = finished.samples_too_small;
    figures.sample.loss(Loss::ChunkNotWritten) = finished.samples_not_written;
    return figures;
  }

  FewFiles opener;
  target::ImageStore images{opener};
  target::ProcessTable processes{images};
  KeepingSink sink;
  std::unique_ptr<ChunkFinisher> finisher =
      std::move(*ChunkFinisher::start(sink, os::thread_priority()));
  std::vector<uint64_t> outer_words;  // copied beside the record
  std::vector<std::pair<uint32_t, uint64_t>> followed;
  std::vector<uint64_t> copy = copied_words();  // of the next cut sample
  std::vector<uint64_t> live_words;             // the process's stack now, from kStack on
  // At kCode; nothing but frame pointers leads out of it. None: it cannot be read.
  std::vector<std::byte> live_code = std::vector<std::byte>(kCode_bytes, kNop);
  uint64_t read_time_ns = 0;
  size_t reads = 0;  // of live_words or live_code
  std::function<target::ProcessSnapshot(uint32_t pid)>
      reread;  // /proc now; empty: nothing is there
  int rereads = 0;
  std::set<uint32_t> gone;  // processes of whose ends records need not tell
  std::optional<std::string> jit_map_problem;
  uint64_t last_program_begin_ns = 0;        // that a JIT map was looked for with
  std::map<uint32_t, std::string> jit_maps;  // by pid
  std::shared_ptr<int> open_jit_maps = std::make_shared<int>();  // has a user for each
  std::optional<uint64_t> now_ns;  // to tell how old a sample is; none: all are new
  uint64_t last_sample_ns = 0;
  std::optional<Recording> recording;
  uint64_t records_seen = 0;
};

}  // namespace sentry_prof::recorder_test
