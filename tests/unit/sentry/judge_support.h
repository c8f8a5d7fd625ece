// Facts built by hand, with a text whose arrays stand where the facts say, and what a judge makes
// of them.
#pragma once

#include "find_problem.h"
#include "sentry/problem_list.h"
#include "sentry/profile_facts.h"

#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::sentry {

struct Judged {
  ValidationReport report;
  ProfileSummary summary;

  std::vector<std::string> rules() const {
    std::vector<std::string> ids;
    for (const Problem& problem : report.problems) ids.emplace_back(problem.rule);
    return ids;
  }
  const Problem* find(std::string_view rule) const { return testing::find_problem(report, rule); }
  std::string pointer(std::string_view rule) const {
    const Problem* const problem = find(rule);
    return problem == nullptr ? "(not told)" : problem->pointer;
  }
};

using Judge = void (*)(const ProfileFacts&, std::string_view, ProblemList&, ProfileSummary&);

// Stack 0 is idle, stack 1 holds frame 0.
class FactsBuilder {
 public:
  explicit FactsBuilder(ValidatedKind kind) {
    facts_.kind = kind;
    facts_.platform = "native";
    facts_.is_whole = true;
    facts_.samples_are_typed = facts_.stacks_are_typed = facts_.frames_are_typed = true;
    stack_of_no_frame();
    stack_up_to(0);
    frame({.instruction_addr = 0x1234, .has_address = true, .has_function = true});
  }

  ProfileFacts& facts() { return facts_; }

  FactsBuilder& v1_sample(uint64_t elapsed_ns, uint32_t thread, uint32_t stack) {
    return sample({.elapsed_ns = elapsed_ns, .thread = thread, .stack = stack});
  }
  FactsBuilder& v2_sample(double timestamp_s, uint32_t thread, uint32_t stack) {
    return sample({.timestamp_s = timestamp_s, .thread = thread, .stack = stack});
  }
  FactsBuilder& stack_of_no_frame() {
    facts_.stacks.push_back({});
    return *this;
  }
  FactsBuilder& stack_up_to(uint32_t frame) {
    StackFact stack;
    stack.is_empty = false;
    stack.largest_frame = frame & StackFact::kLargestIndex;
    facts_.stacks.push_back(stack);
    return *this;
  }
  FactsBuilder& frame(const FrameFact& fact) {
    facts_.frames.push_back(fact);
    ++facts_.frame_count;
    return *this;
  }
  FactsBuilder& image(uint64_t begin, uint64_t size) {
    ImageFact image;
    image.image_addr = begin;
    image.image_size = size;
    facts_.images.push_back(image);
    ++facts_.image_count;
    return *this;
  }
  FactsBuilder& metadata(std::string_view id) {
    ThreadFact thread;
    thread.id = id;
    thread.has_metadata = true;
    facts_.threads.push_back(thread);
    return *this;
  }

  Judged judge(Judge function, const ValidateOptions& options = {}) {
    for (StackFact& stack : facts_.stacks) {
      stack.has_missing_frame = !stack.is_empty && stack.largest_frame >= facts_.frame_count;
    }
    const std::string text = place();
    Judged judged;
    ProblemList problems(options);
    function(facts_, text, problems, judged.summary);
    std::move(problems).finish(text, judged.report);
    return judged;
  }

 private:
  FactsBuilder& sample(const SampleFact& fact) {
    static constexpr std::string_view kIds[] = {"100", "101", "102", "103"};
    while (facts_.threads.size() <= fact.thread) {
      ThreadFact thread;
      thread.id = kIds[facts_.threads.size()];
      facts_.threads.push_back(thread);
    }
    facts_.threads[fact.thread].has_samples = true;
    facts_.samples.push_back(fact);
    return *this;
  }

  static std::string repeated(std::string_view what, size_t times) {
    std::string list = "[";
    for (size_t i = 0; i < times; ++i) list.append(i == 0 ? "" : ",").append(what);
    return list + "]";
  }

  std::string place() {
    std::string text = R"({"transaction":{"active_thread_id":"100"},"profile":{"samples":)";
    facts_.samples_offset = text.size();
    text += repeated(R"({"elapsed_since_start_ns":0,"timestamp":0,"thread_id":"100","stack_id":0})",
                     facts_.samples.size());
    text += R"(,"stacks":)";
    facts_.stacks_offset = text.size();
    text += repeated("[0]", facts_.stacks.size()) + R"(,"frames":)";
    facts_.frames_offset = text.size();
    text += repeated(R"({"instruction_addr":"0x1"})", facts_.frames.size());
    return text + R"(,"thread_metadata":{}}})";
  }

  ProfileFacts facts_;
};

inline FactsBuilder v1() { return FactsBuilder(ValidatedKind::V1); }
inline FactsBuilder v2() { return FactsBuilder(ValidatedKind::V2); }

}  // namespace sentry_prof::sentry
