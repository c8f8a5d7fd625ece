#include "recorder/sampled_threads.h"

#include <utility>

namespace sentry_prof::recorder {

uint32_t SampledThreads::on_sample(uint32_t pid, uint32_t tid, uint64_t time_ns) {
  Thread& sampled = thread(pid, tid, time_ns);
  add_marker(sampled, tid, sampled.activity.on_sample(time_ns, sampling_period_ns_));
  return index_in_chunk(sampled, tid);
}

void SampledThreads::on_switch(uint32_t pid, uint32_t tid, bool is_out, uint64_t time_ns) {
  Thread& switched = thread(pid, tid, time_ns);
  if (is_out) {
    switched.activity.on_switch_out(time_ns);
  } else {
    add_marker(switched, tid, switched.activity.on_switch_in(time_ns, sampling_period_ns_));
  }
}

void SampledThreads::on_records_lost(uint64_t time_ns) {
  losses_ns_.push_back(time_ns);
  if (losses_ns_.size() >= kMaxLosses) learn_all_losses();
}

// Behind the first one it counts as away, until it shows up again.
void SampledThreads::learn_losses(Thread& thread) {
  if (thread.losses_seen >= losses_ns_.size()) return;
  thread.activity.on_records_lost(losses_ns_[thread.losses_seen]);
  thread.losses_seen = losses_ns_.size();
}

void SampledThreads::learn_all_losses() {
  if (losses_ns_.empty()) return;
  for (auto& [tid, known] : threads_) {
    learn_losses(known);
    known.losses_seen = 0;
  }
  losses_ns_.clear();
}

void SampledThreads::end(uint32_t tid, uint64_t time_ns) {
  const auto ended = threads_.find(tid);
  if (ended == threads_.end()) return;
  learn_losses(ended->second);
  add_marker(ended->second, tid, ended->second.activity.on_exit(time_ns));
  name_in_chunk(ended->second, tid);
  figures_.on_cpu_ns += ended->second.activity.on_cpu_ns();
  by_process_.erase({ended->second.pid, tid});
  threads_.erase(ended);
}

void SampledThreads::end_others(uint32_t pid, std::optional<uint32_t> survivor_tid,
                                uint64_t time_ns) {
  for (auto it = by_process_.lower_bound({pid, 0}); it != by_process_.end() && it->first == pid;) {
    const uint32_t tid = it++->second;
    if (tid != survivor_tid) end(tid, time_ns);
  }
}

// Exits whose records were lost add up. Those that are in this chunk are bounded by its size.
void SampledThreads::end_unsampled(uint64_t time_ns) {
  for (auto it = threads_.begin(); it != threads_.end();) {
    const auto current = it++;
    if (current->second.chunk_serial != chunk_serial_) end(current->first, time_ns);
  }
}

// Only those that the chunk has can have a stack in it that is still open.
void SampledThreads::end_chunk(uint64_t end_ns) {
  for (const uint32_t tid : std::exchange(chunk_tids_, {})) {
    const auto found = threads_.find(tid);
    if (found == threads_.end()) continue;  // it ended
    Thread& known = found->second;
    learn_losses(known);
    add_marker(known, tid, known.activity.on_chunk_end(end_ns, sampling_period_ns_));
    name_in_chunk(known, tid);
  }
  ++chunk_serial_;
}

void SampledThreads::leave_cpus(uint64_t end_ns) {
  learn_all_losses();
  for (auto& [tid, known] : threads_) known.activity.leave_cpu(end_ns);
}

void SampledThreads::end_all() {
  for (auto& [tid, known] : threads_) figures_.on_cpu_ns += known.activity.on_cpu_ns();
  threads_.clear();
  by_process_.clear();
}

SampledThreads::Thread& SampledThreads::thread(uint32_t pid, uint32_t tid, uint64_t time_ns) {
  const auto known = threads_.find(tid);
  if (known != threads_.end() && known->second.pid != pid) end(tid, time_ns);
  if (threads_.size() >= target::ProcessTable::kMaxThreads && !threads_.contains(tid)) {
    end_unsampled(time_ns);
  }
  const auto [entry, is_new] = threads_.try_emplace(tid);
  if (is_new) {
    by_process_.emplace(pid, tid);
    entry->second.losses_seen = losses_ns_.size();
    entry->second.pid = pid;
    entry->second.generation = processes_.thread(pid, tid).generation;
  }
  learn_losses(entry->second);
  return entry->second;
}

uint32_t SampledThreads::index_in_chunk(Thread& thread, uint32_t tid) {
  if (thread.chunk_serial != chunk_serial_) {
    thread.chunk_serial = chunk_serial_;
    chunk_tids_.push_back(tid);
    thread.chunk_thread = builder_.thread(thread.pid, tid, thread.generation);
  }
  return thread.chunk_thread;
}

void SampledThreads::add_marker(Thread& thread, uint32_t tid, std::optional<uint64_t> time_ns) {
  if (!time_ns) return;
  builder_.add_sample(*time_ns, index_in_chunk(thread, tid), {});
  ++figures_.idle_markers;
}

void SampledThreads::name_in_chunk(const Thread& thread, uint32_t tid) {
  if (thread.chunk_serial != chunk_serial_) return;
  builder_.name_thread(thread.chunk_thread, processes_.thread(thread.pid, tid).name,
                       processes_.process(thread.pid).name);
}

}  // namespace sentry_prof::recorder
