#include "sentry/judge_stacks.h"

#include "sentry/element_reports.h"

#include <algorithm>

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

// Relay cuts addresses of arm64's pointer authentication with this mask, on 36 bits.
constexpr uint64_t kCocoaMask = 0xFFFFFFFFF;

void judge_frame_indices(const ProfileFacts& facts, ElementReports& reports) {
  for (size_t i = 0; i < facts.stacks.size(); ++i) {
    if (!facts.stacks[i].has_missing_frame) continue;
    if (!reports.takes("stack-frame")) continue;
    const uint32_t largest = facts.stacks[i].largest_frame;
    reports.add("stack-frame", i, {},
                largest == StackFact::kLargestIndex
                    ? fmt::format("this stack names a frame that does not exist: there are {}",
                                  facts.frame_count)
                    : fmt::format("this stack names frame {}, there are {}, counted from 0",
                                  largest, facts.frame_count));
  }
}

void judge_empty_frames(const ProfileFacts& facts, ElementReports& reports) {
  for (size_t i = 0; i < facts.frames.size(); ++i) {
    const FrameFact& frame = facts.frames[i];
    if (frame.has_address || frame.has_function || frame.has_filename) continue;
    if (!reports.takes("frame-empty")) continue;
    reports.add("frame-empty", i, {},
                "this frame has neither filename nor function nor instruction_addr");
  }
}

template <typename Predicate>
void tell_first(const ProfileFacts& facts, ElementReports& reports, std::string_view rule,
                std::string_view member, std::string_view what, Predicate is_affected) {
  const auto first = std::find_if(facts.frames.begin(), facts.frames.end(), is_affected);
  if (first == facts.frames.end() || !reports.takes(rule)) return;
  reports.add(
      rule, static_cast<size_t>(first - facts.frames.begin()), member,
      fmt::format("{} of {} frames, this one first, {}",
                  std::count_if(first, facts.frames.end(), is_affected), facts.frame_count, what));
}

// Without images Sentry does not symbolicate: names stay as they are.
void judge_symbolication(const ProfileFacts& facts, ElementReports& reports) {
  if (facts.platform != "rust" || facts.image_count == 0) return;
  tell_first(facts, reports, "frame-address-rust", {},
             "have no instruction_addr: Sentry symbolicates none of the profile's frames then",
             [](const FrameFact& frame) { return !frame.has_address; });
  tell_first(
      facts, reports, "frame-function-rust", {},
      "have an address and no function: where Sentry finds no name, the root of such a stack is "
      "cut off",
      [](const FrameFact& frame) { return frame.has_address && !frame.has_function; });
}

bool is_cut(const ProfileFacts& facts) {
  if (facts.platform != "cocoa") return false;
  return facts.kind == ValidatedKind::V2 || facts.architecture == "arm64" ||
         facts.architecture == "arm64e";
}

void judge_cut_addresses(const ProfileFacts& facts, ElementReports& reports) {
  if (!is_cut(facts)) return;
  tell_first(
      facts, reports, "cocoa-addresses", "instruction_addr",
      "have an address of more than 36 bits: the server cuts it off, as Apple's systems need it",
      [](const FrameFact& frame) { return frame.instruction_addr > kCocoaMask; });
}

void summarize(const ProfileFacts& facts, ProfileSummary& summary) {
  summary.stacks += facts.stacks.size();
  summary.frames += facts.frame_count;
  for (const FrameFact& frame : facts.frames) {
    summary.frames_with_function += frame.has_function ? 1U : 0U;
    summary.frames_with_line += frame.has_line ? 1U : 0U;
    summary.frames_with_address += frame.has_address ? 1U : 0U;
  }
}

}  // namespace

void judge_stacks(const ProfileFacts& facts, std::string_view text, ProblemList& problems,
                  ProfileSummary& summary) {
  summarize(facts, summary);
  ElementReports stacks(text, facts.stacks_offset, "/profile/stacks", problems);
  ElementReports frames(text, facts.frames_offset, "/profile/frames", problems);
  if (facts.stacks_are_typed) {
    if (facts.stacks.empty()) stacks.add_whole("stacks-empty", "there are no stacks");
    if (facts.frames_are_typed) judge_frame_indices(facts, stacks);
  }
  if (facts.frames_are_typed) {
    if (facts.frame_count == 0) frames.add_whole("frames-empty", "there are no frames");
    judge_empty_frames(facts, frames);
    judge_symbolication(facts, frames);
    judge_cut_addresses(facts, frames);
  }
  std::move(stacks).report();
  std::move(frames).report();
}

}  // namespace sentry_prof::sentry
