#include "recorder/recording.h"

#include "base/time_units.h"
#include "os/clock.h"
#include "recorder/mapping_of_event.h"
#include "sentry_prof/limits.h"

#include <algorithm>
#include <utility>

namespace sentry_prof::recorder {

namespace {

// Estimating a chunk's size is cheap but not free; a sample adds at most some 20 KiB.
constexpr uint32_t kSamplesPerSizeCheck = 256;
// Processes that have not been sampled since their exec. Their ends may get lost.
constexpr size_t kMaxExecs = 4096;
constexpr uint64_t kFreshSample_ns = 300'000'000;
// A stack is walked again for each copy of an image's code that it turns out to lie in. Programs
// make one or two; the rest of more is for the next samples.
constexpr int kMaxCopiesASample = 4;
// Modules and processes that are looked at for images that can be forgotten, for each event, or
// process that was dropped, since they were last: they may be a million, and chunks in which next
// to nothing happened many.
constexpr uint64_t kLooksAChange = 1024;

bool is_in_no_image(const profile::FrameKey& frame) {
  return frame.image >= AnonymousRegions::kFirst;
}

}  // namespace

uint64_t first_chunk_slack_ns(uint64_t chunk_ns) {
  constexpr uint64_t kMaxSlack_ns = 500'000'000;  // V1's chunks of 29 s stay below Sentry's 30
  const uint64_t slack_ns = std::min(kMaxSlack_ns, chunk_ns / 20);
  return chunk_ns + slack_ns <= limits::kV2MaxDuration_ns ? slack_ns : 0;
}

Recording::Recording(RecordingOptions options, target::ProcessTable& processes,
                     target::ImageStore& images, ChunkFinisher& finisher, uint64_t begin_ns)
    : options_(std::move(options)),
      processes_(processes),
      images_(images),
      finisher_(finisher),
      walker_({.register_mask = options_.register_mask,
               .read_memory = options_.read_memory,
               .follow_outer_stack = options_.follow_outer_stack,
               .now_ns = [this] { return now_ns(); }}),
      builder_(begin_ns),
      regions_(options_.find_jit_map),
      namer_(options_.session, options_.main_pid, options_.main_executable,
             options_.name_executable, processes, images),
      threads_(builder_, processes_, figures_, kNsPerSecond / options_.frequency_hz),
      chunk_begin_ns_(begin_ns),
      chunk_end_ns_(begin_ns + options_.chunk_ns + options_.first_chunk_slack_ns),
      samples_until_size_check_(kSamplesPerSizeCheck) {}

void Recording::on_event(const sampling::Event& event) {
  cut_chunk_if_due(event.time_ns);
  ++changes_since_forgetting_;
  std::visit([&](const auto& body) { on_body(event.time_ns, body); }, event.body);
}

void Recording::on_time(uint64_t time_ns) {
  walker_.end_batch();
  cut_chunk_if_due(time_ns);
}

void Recording::cut_chunk_if_due(uint64_t time_ns) {
  if (time_ns < chunk_end_ns_) return;
  cut_chunk(chunk_end_ns_);
  // Chunks in which nothing happened are passed over at once, however many they are.
  const uint64_t empty_chunks = (time_ns - chunk_end_ns_) / options_.chunk_ns;
  begin_chunk(chunk_end_ns_ + empty_chunks * options_.chunk_ns);
  if (empty_chunks > 0) builder_ = profile::ChunkBuilder(chunk_begin_ns_);
}

void Recording::begin_chunk(uint64_t begin_ns) {
  chunk_begin_ns_ = begin_ns;
  chunk_end_ns_ = begin_ns + options_.chunk_ns;
}

void Recording::on_clock_step(uint64_t time_ns, const profile::ClockAnchor& clock) {
  cut_chunk_if_due(time_ns);
  if (time_ns > chunk_begin_ns_) {
    cut_chunk(time_ns);
    begin_chunk(time_ns);
  }
  options_.clock = clock;
  ++figures_.clock_steps;
}

void Recording::finish(uint64_t end_ns) {
  cut_chunk_if_due(end_ns);
  threads_.leave_cpus(end_ns);
  cut_chunk(end_ns);
  threads_.end_all();
}

void Recording::on_body(uint64_t time_ns, const sampling::SampleEvent& sample) {
  if (!sample.registers.is_present) {
    ++figures_.loss(Loss::NoUserRegisters);
    return;
  }
  if (sample.registers.is_32_bit) {
    ++figures_.loss(Loss::UnsupportedAbi);
    return;
  }
  if (is_during_exec(sample)) {
    ++figures_.loss(Loss::DuringExec);
    return;
  }
  execs_.erase(sample.pid);
  const target::Process& process = processes_.process(sample.pid);
  if (rereads_.may_be_stale(sample.pid, process.modules_known_at_ns, time_ns)) {
    reread_maps(sample, time_ns);
  }
  SampleWalk walked = walker_.walk(time_ns, sample, process.modules);
  walk_by_more_code(walked, time_ns, sample, process);
  if (walked.walk.frames.empty()) {
    ++figures_.loss(Loss::UnmappedPc);
    return;
  }
  take(walked, time_ns, sample, process.modules);
  cut_large_chunk(time_ns);
}

// Where the walk shows that code is mapped which was not known, or that memory is a copy of an
// image's code, the stack is walked again.
void Recording::walk_by_more_code(SampleWalk& walked, uint64_t time_ns,
                                  const sampling::SampleEvent& sample,
                                  const target::Process& process) {
  if (wants_image(walked.walk) && reread_maps(sample, time_ns)) {
    walked = walker_.walk(time_ns, sample, process.modules);
  }
  for (int copies = 0; copies < kMaxCopiesASample && !process.possible_code.modules().empty();
       ++copies) {
    const unwind::Module* const code = walker_.find_copied_code(process, walked.walk, time_ns);
    if (code == nullptr) return;
    processes_.on_proven_code(process.pid, *code);
    walked = walker_.walk(time_ns, sample, process.modules);
  }
}

void Recording::take(const SampleWalk& walked, uint64_t time_ns,
                     const sampling::SampleEvent& sample, const unwind::ModuleMap& modules) {
  const unwind::Walk& stack = walked.walk;
  if (walked.was_cut) ++figures_.cut_copies;
  if (walked.misses_outer_stack) ++figures_.outer_stacks_missed;
  collect_frames(stack, sample.pid, modules);
  const uint32_t thread = threads_.on_sample(sample.pid, sample.tid, time_ns);
  ++figures_.samples;
  if (!defer(time_ns, sample.pid, thread, walked, modules)) {
    put_into_chunk(time_ns, thread, {stack.end, walked.by, frame_buffer_});
  }
  if (waiting_.empty()) return;
  put_cut(waiting_.take_overdue(time_ns - std::min(time_ns, kMaxJoinAge_ns)));
  const bool was_learnt =
      stack.is_complete() && stack.is_followed && !stack.frames.back().is_joined;
  if (was_learnt) settle_waiting(thread, walker_.memory_of(sample.pid, sample.tid), modules);
}

// The one place where what became of a stack is counted.
void Recording::put_into_chunk(uint64_t time_ns, uint32_t chunk_thread, const KnownStack& stack) {
  ++figures_.walk_ends[static_cast<size_t>(stack.end)];
  count_completion(stack.by);
  if (std::ranges::any_of(stack.frames, is_in_no_image)) ++figures_.samples_with_jit_frames;
  if (stack.end == unwind::WalkEnd::NoUnwindInfo && !stack.frames.empty()) {
    const auto image = images_.image(stack.frames.back().image);
    if (image == nullptr) {
      ++figures_.samples_ending_outside_files;
    } else if (image->is_known_by_name_only()) {
      ++figures_.samples_ending_in_unread_files;
    }
  }
  builder_.add_sample(time_ns, chunk_thread, stack.frames);
}

void Recording::count_completion(CompletedBy by) {
  switch (by) {
    case CompletedBy::Nothing:
      return;
    case CompletedBy::OuterStack:
      ++figures_.samples_with_outer_stacks;
      return;
    case CompletedBy::LiveStack:
    case CompletedBy::LeftStack:
      ++figures_.samples_with_live_frames;
      return;
    case CompletedBy::LastWhole:
    case CompletedBy::NextWhole:
      ++figures_.samples_with_joined_frames;
      return;
  }
}

// From the record of an exec until the new program runs, the kernel sets up its memory while the
// registers are still those of the old one: there is no stack, and what the new program has at that
// pc, if it has any code there (programs that are linked to one address), did not run.
bool Recording::is_during_exec(const sampling::SampleEvent& sample) const {
  return sample.stack.empty() && execs_.contains(sample.pid);
}

// Ends in a place that no map shows, or comes through a file that nobody gave us when we asked: of
// such a file nothing has a name, and callers may be left out, also where a root was found.
bool Recording::wants_image(const unwind::Walk& walk) const {
  if (walk.end == unwind::WalkEnd::UnmappedPc) return true;
  for (size_t i = 0; i < walk.frames.size(); ++i) {
    // Who has rows has its file.
    const bool has_rows =
        i + 1 < walk.frames.size() && walk.frames[i + 1].origin == unwind::FrameOrigin::Cfi;
    const unwind::ImageId image = walk.frames[i].image;
    if (!has_rows && image != unwind::kNoImage && images_.is_unanswered(image)) return true;
  }
  return false;
}

// False if they are not read, or tell of another program than the sample's: an exec that happened
// since is still to come out of the ring.
bool Recording::reread_maps(const sampling::SampleEvent& sample, uint64_t time_ns) {
  if (!options_.reread_process) return false;
  // /proc tells of now; for a sample that waited long in the ring it would be a guess.
  const uint64_t now = now_ns();
  if (now > time_ns && now - time_ns > kFreshSample_ns) return false;
  if (!rereads_.begin(sample.pid, time_ns)) return false;
  const auto snapshot = options_.reread_process(sample.pid);
  if (!snapshot || !has_code_of(*snapshot, sample)) return false;
  processes_.on_snapshot(*snapshot);
  return true;
}

uint64_t Recording::now_ns() const {
  return options_.now_ns ? options_.now_ns() : os::monotonic_ns();
}

bool Recording::has_code_of(const target::ProcessSnapshot& snapshot,
                            const sampling::SampleEvent& sample) const {
  const uint64_t pc = walker_.pc_of(sample);
  return std::ranges::any_of(snapshot.mappings, [pc](const target::MappingFacts& mapping) {
    return pc - mapping.begin.value < mapping.size_bytes;
  });
}

void Recording::collect_frames(const unwind::Walk& walk, uint32_t pid,
                               const unwind::ModuleMap& modules) {
  frame_buffer_.clear();
  figures_.frames_left_out += walk.frames_left_out;
  if (walk.frames_left_out > 0) ++figures_.samples_with_frames_left_out;
  for (const unwind::WalkedFrame& frame : walk.frames) {
    frame_buffer_.push_back(key_of(frame, pid, modules));
  }
}

profile::FrameKey Recording::key_of(const unwind::WalkedFrame& frame, uint32_t pid,
                                    const unwind::ModuleMap& modules) {
  ++figures_.frames_by_origin[static_cast<size_t>(frame.origin)];
  if (frame.is_live) ++figures_.live_frames;
  if (frame.is_joined) ++figures_.joined_frames;
  uint32_t image = frame.image;
  if (image == unwind::kNoImage) {
    const unwind::Module* module = modules.find({frame.lookup_pc()});
    if (module != nullptr) {
      image = regions_.number_of(pid, module->begin.value, module->end.value);
      if (image == profile::FrameKey::kNoImage) ++figures_.frames_without_place;
    }
  }
  return {image, frame.pc_is_exact, frame.pc};
}

void Recording::cut_large_chunk(uint64_t time_ns) {
  if (--samples_until_size_check_ > 0) return;
  samples_until_size_check_ = kSamplesPerSizeCheck;
  // A frame that is held is an index of a few digits then.
  const uint64_t json_bytes = builder_.estimated_json_bytes() + walker_.left_stacks().held_bytes();
  if (json_bytes < options_.max_chunk_json_bytes) return;
  cut_chunk(time_ns + 1);
  begin_chunk(time_ns + 1);
}

void Recording::on_body(uint64_t time_ns, const sampling::MapEvent& map) {
  if (map.is_data) return;
  processes_.on_map(time_ns, mapping_facts_of(map));
  namer_.on_map(map.pid, map.begin);
}

void Recording::on_body(uint64_t time_ns, const sampling::CommEvent& comm) {
  // The threads that end by it have the names of the program before.
  if (comm.is_exec) threads_.end_others(comm.pid, comm.tid, time_ns);
  processes_.on_comm(comm.pid, comm.tid, comm.name, comm.is_exec, time_ns);
  if (!comm.is_exec) return;
  forget_code(comm.pid);  // of the program before
  regions_.on_exec(comm.pid, time_ns);
  if (execs_.size() > kMaxExecs) execs_.clear();
  execs_.insert(comm.pid);
  namer_.on_exec(comm.pid);
}

void Recording::forget_code(uint32_t pid) {
  rereads_.forget(pid);
  walker_.forget_code(pid);
}

void Recording::forget_process(uint32_t pid) {
  forget_code(pid);
  execs_.erase(pid);
  walker_.forget_deep_process(pid);
  gone_before_.erase(pid);
  regions_.on_process_end(pid);
}

void Recording::on_body(uint64_t time_ns, const sampling::ForkEvent& fork) {
  threads_.end(fork.tid, time_ns);  // its exit record was lost
  walker_.forget_deep_thread(fork.tid);
  // Of a process that was there before: its own records tell its name and mappings.
  if (fork.is_synthesized && fork.pid != fork.parent_pid) return;
  if (fork.pid == fork.tid) forget_process(fork.pid);  // the record of its end was lost
  processes_.on_fork(fork.pid, fork.tid, fork.parent_pid, fork.parent_tid, time_ns);
}

void Recording::on_body(uint64_t time_ns, const sampling::ExitEvent& exit) {
  threads_.end(exit.tid, time_ns);
  walker_.forget_deep_thread(exit.tid);
  execs_.erase(exit.tid);
  processes_.on_exit(exit.pid, exit.tid);
  // Other threads may live longer than the main one.
  if (!processes_.process(exit.pid).has_exited) return;
  forget_process(exit.pid);
  namer_.on_end(exit.pid);
}

void Recording::on_body(uint64_t time_ns, const sampling::SwitchEvent& change) {
  if (change.pid == 0) return;  // the idle tasks, of which each CPU has one (perf record -a)
  threads_.on_switch(change.pid, change.tid, change.is_out, time_ns);
}

// Among the lost records may be any that this state rests on.
void Recording::on_body(uint64_t time_ns, const sampling::LostEvent&) {
  threads_.on_records_lost(time_ns);
  rereads_.on_records_lost(time_ns);
  execs_.clear();
}

void Recording::cut_chunk(uint64_t end_ns) {
  put_cut(waiting_.take_all());
  put_held();
  end_gone_processes(end_ns);
  threads_.end_chunk(end_ns);
  profile::RawChunk chunk = builder_.finish(end_ns);
  if (!chunk.samples.empty()) hand_on(std::move(chunk));
  forget_unused();
}

void Recording::hand_on(profile::RawChunk chunk) {
  regions_.look_for_jit_maps();
  ChunkJob job{.chunk = std::move(chunk),
               .session = namer_.session(),
               .clock = options_.clock,
               .main_pid = options_.main_pid,
               .forgotten_images = std::exchange(forgotten_images_, {})};
  job.images = images_of_chunk(job.chunk, images_, regions_);
  const uint64_t samples = job.chunk.samples_with_stack();
  if (finisher_.submit(std::move(job))) return;
  figures_.loss(Loss::ChunkQueueFull) += samples;
  forgotten_images_ = std::move(job.forgotten_images);
}

// Those of whose last thread no record told: it was lost, or the thread had ended before it was
// seen in /proc (a main thread that is a zombie as long as others live). Who seems to live for ever
// keeps files open for ever. One that has just ended has samples and an end in the ring: it is
// ended once all that was before the question has come out of it.
void Recording::end_gone_processes(uint64_t time_ns) {
  std::unordered_map<uint32_t, uint64_t> gone;
  for (const uint32_t pid : gone_processes()) {
    const auto before = gone_before_.find(pid);
    if (before == gone_before_.end() || time_ns <= before->second) {
      gone[pid] = before == gone_before_.end() ? now_ns() : before->second;
      continue;
    }
    threads_.end_others(pid, std::nullopt, time_ns);
    namer_.on_end(pid);
    processes_.on_process_gone(pid);
    forget_process(pid);
  }
  gone_before_ = std::move(gone);
}

std::vector<uint32_t> Recording::gone_processes() const {
  if (!options_.is_gone) return {};
  std::vector<uint32_t> pids = processes_.processes_without_end();
  std::erase_if(pids, [&](uint32_t pid) { return !options_.is_gone(pid); });
  return pids;
}

// What only the chunk before could refer to, so that a recording of months takes no more than one
// of minutes.
void Recording::forget_unused() {
  regions_.begin_chunk();
  images_.refill_budget();
  const size_t kept_before = processes_.kept_process_count();
  processes_.drop_long_ended();
  changes_since_forgetting_ += kept_before - processes_.kept_process_count();
  const uint64_t looks = processes_.kept_module_count() + processes_.kept_process_count();
  if (looks > kLooksAChange * changes_since_forgetting_) return;
  changes_since_forgetting_ = 0;
  const auto gone = images_.forget_unmapped(processes_.mapped_images());
  forgotten_images_.insert(forgotten_images_.end(), gone.begin(), gone.end());
}

}  // namespace sentry_prof::recorder
