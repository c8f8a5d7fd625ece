#include "recorder/replay.h"

#include "recorder/stored_run.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::recorder {

namespace {

class ReplayedFile final : public ByteSource {
 public:
  explicit ReplayedFile(const RawFile& file) : file_(file) {}
  uint64_t size_bytes() const override { return file_.size_bytes; }

  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override {
    if (offset > file_.size_bytes || out.size() > file_.size_bytes - offset) return false;
    while (!out.empty()) {
      const auto block = file_.blocks.find(offset / kRawBlock_bytes);
      if (block == file_.blocks.end()) return false;
      const Bytes rest = block->second.subspan(static_cast<size_t>(offset % kRawBlock_bytes));
      const size_t count = std::min(rest.size(), out.size());
      std::copy_n(rest.begin(), count, out.begin());
      out = out.subspan(count);
      offset += count;
    }
    return true;
  }
  bool will_be_read_in_pieces(uint64_t, uint64_t) const override { return true; }

 private:
  const RawFile& file_;
};

class ReplayOpener final : public target::ImageOpener {
 public:
  explicit ReplayOpener(const RawLog& log) : log_(log) {}

  Result<std::shared_ptr<const ByteSource>> open(const target::MappingFacts& mapping) override {
    return file_of(RawQuestion::Open, mapping);
  }
  Result<std::shared_ptr<const ByteSource>> open_by_path(
      const target::MappingFacts& mapping) override {
    return file_of(RawQuestion::OpenByPath, mapping);
  }
  Result<std::shared_ptr<const ByteSource>> open_mapped(
      const target::MappingFacts& mapping) override {
    return file_of(RawQuestion::OpenMapped, mapping);
  }
  bool name_is_literal(const target::MappingFacts& mapping) override {
    const RawAnswer* answer = next_answer(RawQuestion::NameIsLiteral, mapping);
    return answer != nullptr && answer->is_yes;
  }

 private:
  const RawAnswer* next_answer(RawQuestion question, const target::MappingFacts& mapping) {
    const auto answers = log_.answers.find(raw_question_key(question, mapping));
    if (answers == log_.answers.end()) return nullptr;
    const size_t turn = asked_[answers->first]++;
    return &answers->second[std::min(turn, answers->second.size() - 1)];
  }

  Result<std::shared_ptr<const ByteSource>> file_of(RawQuestion question,
                                                    const target::MappingFacts& mapping) {
    const RawAnswer* answer = next_answer(question, mapping);
    if (answer == nullptr) return fail(ErrorCode::NotFound, "not in the raw log");
    if (!answer->is_yes) return tl::unexpected(answer->error);
    return std::make_shared<ReplayedFile>(log_.files[answer->file_number]);
  }

  const RawLog& log_;
  std::unordered_map<std::string, size_t> asked_;
};

RecordingOptions options_of(const RawSession& session, const Uuid& profiler_id) {
  RecordingOptions options;
  options.chunk_ns = session.chunk_ns;
  options.first_chunk_slack_ns = first_chunk_slack_ns(session.chunk_ns);
  options.max_chunk_json_bytes = session.max_chunk_json_bytes;
  options.frequency_hz = session.frequency_hz;
  options.register_mask = session.setup.register_mask;
  options.clock = session.clock;
  options.main_pid = session.main_pid;
  options.main_executable = session.main_executable;
  options.session = session.texts;
  options.session.profiler_id = profiler_id;
  return options;
}

// One run over a log's steps.
class Player {
 public:
  Player(const RawLog& log, const sampling::RecordLayout& layout) : log_(log), records_(layout) {}

  Result<RunFigures> run(const Uuid& profiler_id, ChunkSink& sink) {
    StoredRunOptions options;
    options.recording = with_rereads(profiler_id);
    options.begin_ns = log_.session.begin_ns;
    auto run = StoredRun::start(std::move(options), make_replay_opener(log_), sink);
    if (!run) return tl::unexpected(run.error());
    for (const RawStep& step : log_.steps) play(step, **run);
    if (log_.end) records_.finish(log_.end->stats);
    return (*run)->finish(end_ns(), records_.stats(), log_.session.setup);
  }

 private:
  uint64_t end_ns() const {
    return std::max(log_.end ? log_.end->time_ns : last_time_ns_, log_.session.begin_ns);
  }

  // Maps and memory were read again where the log says so, and nowhere else.
  RecordingOptions with_rereads(const Uuid& profiler_id) {
    RecordingOptions options = options_of(log_.session, profiler_id);
    options.now_ns = [this] {
      return current_ != nullptr && current_->snapshot ? last_time_ns_ : UINT64_MAX;
    };
    options.reread_process = [this](uint32_t) { return log_.snapshots[*current_->snapshot]; };
    options.read_memory = [this](const MemoryRequest&, std::span<os::MemoryRange> ranges) {
      uint64_t time_ns = 0;
      for (os::MemoryRange& range : ranges) time_ns = std::max(time_ns, read_memory(range));
      return time_ns;
    };
    return options;
  }

  // Memory that was read, in the order of reading; when that was.
  uint64_t read_memory(os::MemoryRange& range) {
    if (current_ == nullptr || next_memory_ >= current_->memory.size()) return 0;
    const RawMemory& memory = current_->memory[next_memory_];
    if (memory.address != range.address) return 0;
    ++next_memory_;
    range.got_bytes = std::min(range.out.size(), memory.bytes.size());
    std::copy_n(memory.bytes.begin(), range.got_bytes, range.out.begin());
    return memory.time_ns;
  }

  void play(const RawStep& step, StoredRun& run) {
    if (step.kind == RawEntry::Snapshot) {
      const auto& snapshot = log_.snapshots[*step.snapshot];
      if (snapshot) run.on_snapshot(*snapshot);
    } else if (step.kind == RawEntry::Time) {
      run.on_time(step.time_ns);
    } else if (step.kind == RawEntry::ClockStep) {
      run.on_clock_step(step.time_ns, step.clock);
    } else {
      current_ = &step;
      next_memory_ = 0;
      last_time_ns_ = std::max(last_time_ns_, step.time_ns);
      records_.play(last_time_ns_, step.fate, step.record, step.outer_stack, run);
    }
  }

  const RawLog& log_;
  sampling::RecordPlayer records_;
  const RawStep* current_ = nullptr;
  size_t next_memory_ = 0;  // of current_
  uint64_t last_time_ns_ = 0;
};

}  // namespace

std::unique_ptr<target::ImageOpener> make_replay_opener(const RawLog& log) {
  return std::make_unique<ReplayOpener>(log);
}

Result<RunFigures> replay(const RawLog& log, const Uuid& profiler_id, ChunkSink& sink) {
  const auto layout = sampling::RecordLayout::create(
      log.session.setup.sample_type, log.session.setup.register_mask, log.session.has_trailer);
  if (!layout) return tl::unexpected(layout.error());
  return Player(log, *layout).run(profiler_id, sink);
}

}  // namespace sentry_prof::recorder
