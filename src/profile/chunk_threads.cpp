#include "profile/chunk_threads.h"

#include "base/utf8.h"
#include "profile/bounded_text.h"
#include "sentry_prof/limits.h"

#include <algorithm>

namespace sentry_prof::profile {
namespace {

std::vector<bool> threads_with_samples(const RawChunk& chunk) {
  std::vector<bool> result(chunk.threads.size());
  for (const RawSample& sample : chunk.samples) result[sample.thread] = true;
  return result;
}

// "worker"; "cc1plus (1234)" for another process's main thread, "worker (cc1plus 1234)" for its
// others.
std::string whole_name(const RawThread& thread, uint32_t main_pid) {
  const std::string process = printable_utf8(thread.process_name);
  std::string name = printable_utf8(thread.name);
  if (name.empty()) name = process;
  if (name.empty()) name = "thread " + std::to_string(thread.tid);
  if (thread.pid == main_pid) return name;
  const bool says_more = !process.empty() && process != name;
  return name + " (" + (says_more ? process + " " : "") + std::to_string(thread.pid) + ")";
}

std::string display_name(const RawThread& thread, uint32_t main_pid) {
  return shortened_for_json(whole_name(thread, main_pid), kThreadName_bytes);
}

// V1 shows one thread at first. A main thread that only waits for busy ones would hide what the
// program does.
constexpr uint32_t kMainThreadShare = 10;

// Higher is shown first: the process's own main thread if it did something, then the busiest.
struct Prominence {
  bool is_usable_main = false;
  uint32_t samples = 0;
  auto operator<=>(const Prominence&) const = default;
};

Prominence prominence_of(const RawThread& thread, uint32_t main_pid, uint32_t most_samples) {
  const uint32_t samples = thread.samples_with_stack;
  const bool is_main = thread.pid == main_pid && thread.tid == main_pid;
  const bool is_usable =
      samples >= limits::kMinSamplesPerThread && samples >= most_samples / kMainThreadShare;
  return {is_main && is_usable, samples};
}

uint32_t most_samples_of_a_thread(const RawChunk& chunk) {
  uint32_t most = 0;
  for (const RawThread& thread : chunk.threads) most = std::max(most, thread.samples_with_stack);
  return most;
}

}  // namespace

ChunkThreads name_threads(const RawChunk& chunk, uint32_t main_pid) {
  ChunkThreads result;
  result.index_of_raw.resize(chunk.threads.size());
  const std::vector<bool> has_samples = threads_with_samples(chunk);
  const uint32_t most_samples = most_samples_of_a_thread(chunk);
  Prominence best;
  for (size_t i = 0; i < chunk.threads.size(); ++i) {
    if (!has_samples[i]) continue;
    const RawThread& raw = chunk.threads[i];
    const auto index = static_cast<uint32_t>(result.threads.size());
    const uint64_t id = raw.tid + (uint64_t{raw.generation} << 32);
    result.index_of_raw[i] = index;
    result.threads.push_back({id, raw.pid, raw.tid, display_name(raw, main_pid)});
    if (const Prominence p = prominence_of(raw, main_pid, most_samples); p > best) {
      best = p;
      result.main_thread = index;
    }
  }
  return result;
}

}  // namespace sentry_prof::profile
