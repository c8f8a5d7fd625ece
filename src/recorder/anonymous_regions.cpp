#include "recorder/anonymous_regions.h"

#include "profile/chunk_builder.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sentry_prof::recorder {

uint32_t AnonymousRegions::number_of(uint32_t pid, uint64_t begin, uint64_t end) {
  const bool is_full = regions_.size() >= kMaxRegions;
  auto entry = living_.find(pid);
  if (entry == living_.end()) {
    if (is_full) return profile::FrameKey::kNoImage;
    const auto exec = execs_ns_.find(pid);
    const uint64_t begin_ns = exec == execs_ns_.end() ? 0 : exec->second;
    entry = living_.emplace(pid, Program{.number = programs_++, .begin_ns = begin_ns}).first;
  }
  Program& program = entry->second;
  const auto known = program.regions.find(begin);
  // The same region may have grown; a place that is too small would overlap its neighbour.
  if (known != program.regions.end() && region(known->second).end >= end) return known->second;
  if (is_full) return profile::FrameKey::kNoImage;
  if (program.regions.empty()) look_for_jit_map(pid, program);
  const uint32_t number = kFirst + static_cast<uint32_t>(regions_.size());
  regions_.push_back({program.number, begin, end});
  program.regions[begin] = number;
  return number;
}

std::unordered_map<uint32_t, target::JitMap> AnonymousRegions::jit_maps() const {
  std::unordered_map<uint32_t, target::JitMap> maps;
  for (const auto& [pid, program] : living_) {
    if (program.jit_map) maps.emplace(program.number, program.jit_map);
  }
  for (const Program& program : ended_) maps.emplace(program.number, program.jit_map);
  return maps;
}

// Some programs write their map as the last thing that they do.
void AnonymousRegions::on_process_end(uint32_t pid) {
  if (const auto ended = living_.find(pid); ended != living_.end()) {
    look_for_jit_map(pid, ended->second);
  }
  end_program(pid);
}

void AnonymousRegions::end_program(uint32_t pid) {
  execs_ns_.erase(pid);
  const auto ended = living_.find(pid);
  if (ended == living_.end()) return;
  if (ended->second.jit_map) ended_.push_back(std::move(ended->second));
  living_.erase(ended);
}

void AnonymousRegions::on_exec(uint32_t pid, uint64_t time_ns) {
  end_program(pid);
  if (execs_ns_.size() >= kMaxExecs) execs_ns_.clear();
  execs_ns_[pid] = time_ns;
}

// Processes that were not seen in such code in this chunk have to be found again, but for those
// with an open map: its name may be gone by then.
void AnonymousRegions::begin_chunk() {
  regions_.clear();
  ended_.clear();
  std::erase_if(living_, [](const auto& entry) {
    return entry.second.regions.empty() && !entry.second.jit_map;
  });
  for (auto& [pid, program] : living_) program.regions.clear();
}

void AnonymousRegions::look_for_jit_maps() {
  for (auto& [pid, program] : living_) look_for_jit_map(pid, program);
}

void AnonymousRegions::look_for_jit_map(uint32_t pid, Program& program) {
  if (!find_jit_map_ || program.jit_map) return;
  auto found = find_jit_map_(pid, program.begin_ns);
  if (!found) {
    if (found.error().code != ErrorCode::NotFound) note_problem(found.error().message);
    return;
  }
  if (open_maps() >= kMaxJitMaps) {
    note_problem(
        fmt::format("only {} files /tmp/perf-PID.map are used at a time: the "
                    "code that further processes compile has no names",
                    kMaxJitMaps));
    return;
  }
  program.jit_map = std::move(*found);
}

void AnonymousRegions::note_problem(std::string text) {
  const bool is_new = std::ranges::find(problems_, text) == problems_.end();
  if (is_new && problems_.size() < kMaxProblems) problems_.push_back(std::move(text));
}

size_t AnonymousRegions::open_maps() const {
  const auto living = std::ranges::count_if(
      living_, [](const auto& entry) { return static_cast<bool>(entry.second.jit_map); });
  return static_cast<size_t>(living) + ended_.size();
}

}  // namespace sentry_prof::recorder
