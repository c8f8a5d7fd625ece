#include "profile/chunk_threads.h"

#include "base/utf8.h"
#include "sentry_prof/limits.h"

#include <unordered_map>

namespace sentry_prof::profile {
namespace {

std::vector<bool> threads_with_samples(const RawChunk& chunk) {
  std::vector<bool> result(chunk.threads.size());
  for (const RawSample& sample : chunk.samples) result[sample.thread] = true;
  return result;
}

// "worker"; "cc1plus (1234)" for another process's main thread, "worker (cc1plus 1234)" for its
// others.
std::string display_name(const RawThread& thread, uint32_t main_pid) {
  const std::string process = printable_utf8(thread.process_name);
  std::string name = printable_utf8(thread.name);
  if (name.empty()) name = process;
  if (name.empty()) name = "thread " + std::to_string(thread.tid);
  if (thread.pid == main_pid) return name;
  const bool says_more = !process.empty() && process != name;
  return name + " (" + (says_more ? process + " " : "") + std::to_string(thread.pid) + ")";
}

// Higher is shown first: the process's own main thread if the server keeps it, then the busiest.
struct Prominence {
  bool is_usable_main = false;
  uint32_t samples = 0;
  auto operator<=>(const Prominence&) const = default;
};

Prominence prominence_of(const RawThread& thread, uint32_t main_pid) {
  const bool is_main = thread.pid == main_pid && thread.tid == main_pid;
  return {is_main && thread.samples_with_stack >= limits::kMinSamplesPerThread,
          thread.samples_with_stack};
}

}  // namespace

ChunkThreads name_threads(const RawChunk& chunk, uint32_t main_pid) {
  ChunkThreads result;
  result.index_of_raw.resize(chunk.threads.size());
  const std::vector<bool> has_samples = threads_with_samples(chunk);
  std::unordered_map<uint32_t, uint64_t> times_seen;  // by tid
  Prominence best;
  for (size_t i = 0; i < chunk.threads.size(); ++i) {
    if (!has_samples[i]) continue;
    const RawThread& raw = chunk.threads[i];
    const auto index = static_cast<uint32_t>(result.threads.size());
    const uint64_t id = raw.tid + (times_seen[raw.tid]++ << 32);
    result.index_of_raw[i] = index;
    result.threads.push_back({id, raw.pid, raw.tid, display_name(raw, main_pid)});
    if (const Prominence p = prominence_of(raw, main_pid); p > best) {
      best = p;
      result.main_thread = index;
    }
  }
  return result;
}

}  // namespace sentry_prof::profile
