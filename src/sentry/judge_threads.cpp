#include "sentry/judge_threads.h"

#include "sentry/text_places.h"

#include <algorithm>

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

constexpr std::string_view kMetadata = "/profile/thread_metadata";

// Ids come from the text: one as long as a book is no help in a pointer.
std::string pointer_to(std::string_view id) {
  constexpr size_t kLongestKey = 1024;
  if (id.size() > kLongestKey) return std::string(kMetadata);
  return fmt::format("{}/{}", kMetadata, pointer_token(id));
}

void judge_unreferenced(const ProfileFacts& facts, ProblemList& problems, ProfileSummary& summary) {
  for (const ThreadFact& thread : facts.threads) {
    if (thread.has_samples || !thread.has_metadata) continue;
    ++summary.dropped_thread_names;
    if (!problems.lists("thread-metadata-unreferenced")) {
      problems.count("thread-metadata-unreferenced");
      continue;
    }
    problems.add(
        "thread-metadata-unreferenced", pointer_to(thread.id), thread.metadata_offset,
        fmt::format("no sample is of thread {}: the server drops its name", quoted(thread.id)));
  }
}

// If there is no thread_metadata at all, that has been told.
void judge_unnamed(const ProfileFacts& facts, std::string_view text, ProblemList& problems) {
  const auto is_unnamed = [](const ThreadFact& thread) {
    return thread.has_samples && !thread.has_metadata;
  };
  const auto& threads = facts.threads;
  const auto first = std::find_if(threads.begin(), threads.end(), is_unnamed);
  const bool has_names = std::any_of(threads.begin(), threads.end(),
                                     [](const ThreadFact& thread) { return thread.has_metadata; });
  if (first == threads.end() || !has_names || !problems.lists("thread-name-missing")) return;
  problems.add("thread-name-missing", std::string(kMetadata),
               path_offset(text, {"profile", "thread_metadata"}),
               fmt::format("{} threads that have samples are not in here, thread {} first",
                           std::count_if(first, threads.end(), is_unnamed), quoted(first->id)));
}

void judge_active_thread(const ProfileFacts& facts, std::string_view text, ProblemList& problems) {
  if (facts.kind != ValidatedKind::V1 || facts.samples.empty()) return;
  const std::string_view shown = facts.active_thread_id.value_or("0");
  const bool has_samples = std::any_of(
      facts.threads.begin(), facts.threads.end(),
      [shown](const ThreadFact& thread) { return thread.has_samples && thread.id == shown; });
  if (has_samples || !problems.lists("v1-active-thread")) return;
  const size_t transaction = path_offset(text, {"transaction"});
  const size_t member = path_offset(text, {"transaction", "active_thread_id"});
  if (!facts.active_thread_id) {
    problems.add(
        "v1-active-thread", "/transaction", transaction,
        "without active_thread_id the server takes 0, and no sample is of that thread: Sentry "
        "would show an empty profile");
    return;
  }
  // The server takes the first element of "transactions" as well.
  const bool is_single = member != transaction;
  problems.add(
      "v1-active-thread",
      is_single ? "/transaction/active_thread_id" : "/transactions/0/active_thread_id",
      is_single ? member : path_offset(text, {"transactions"}),
      fmt::format("no sample is of thread {}: Sentry would show an empty profile", quoted(shown)));
}

}  // namespace

void judge_threads(const ProfileFacts& facts, std::string_view text, ProblemList& problems,
                   ProfileSummary& summary) {
  summary.threads += static_cast<uint64_t>(
      std::count_if(facts.threads.begin(), facts.threads.end(),
                    [](const ThreadFact& thread) { return thread.has_samples; }));
  // A thread's samples may be among those that could not be read.
  if (!facts.samples_are_typed) return;
  judge_unreferenced(facts, problems, summary);
  judge_unnamed(facts, text, problems);
  judge_active_thread(facts, text, problems);
}

}  // namespace sentry_prof::sentry
