#include "sentry/repair_lists.h"

#include "base/json_reader.h"
#include "sentry/list_spans.h"
#include "sentry/problem_list.h"
#include "sentry/profile_scan.h"
#include "sentry/repair_samples.h"
#include "sentry/repair_stacks.h"
#include "sentry/text_edit.h"

#include <algorithm>
#include <deque>
#include <vector>

namespace sentry_prof::sentry {

namespace {

class ListRepair {
 public:
  ListRepair(std::string_view text, ProfileFacts& facts, ChangeList& changes)
      : text_(text), facts_(facts), changes_(changes), places_(find_lists(text)), edit_(text) {}

  std::optional<std::string> run();

 private:
  struct Part {
    uint32_t begin;
    void (ListRepair::*write)();
  };

  void write_samples();
  void write_sample(Span sample, uint32_t new_stack);
  void write_stacks();
  void write_frames();
  void write_thread_names();
  void write_queue_names();
  template <typename Write>
  void write_list(Span list, const std::vector<Span>& all, const std::vector<uint32_t>& chosen,
                  Write write);
  // Of `names` those stay that are in `used`.
  void write_names(Span names, std::vector<std::string_view> used, Change change);

  std::string_view text_;
  ProfileFacts& facts_;
  ChangeList& changes_;
  ListPlaces places_;
  TextEdit edit_;
  std::vector<uint32_t> samples_;  // those that stay, in order, by their place in the text
  size_t all_samples_ = 0;
  StacksAndFrames stacks_;
};

std::optional<std::string> ListRepair::run() {
  if (!places_.samples || !places_.stacks || !places_.frames) return {};
  all_samples_ = facts_.samples.size();
  samples_ = choose_samples(facts_, text_, changes_);
  if (samples_.empty()) return {};
  stacks_ = choose_stacks(facts_, text_, places_, changes_);
  std::vector<Part> parts{{places_.samples->begin, &ListRepair::write_samples},
                          {places_.stacks->begin, &ListRepair::write_stacks},
                          {places_.frames->begin, &ListRepair::write_frames}};
  if (places_.thread_metadata) {
    parts.push_back({places_.thread_metadata->begin, &ListRepair::write_thread_names});
  }
  if (places_.queue_metadata && facts_.kind == ValidatedKind::V1) {
    parts.push_back({places_.queue_metadata->begin, &ListRepair::write_queue_names});
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.begin < b.begin; });
  for (const Part& part : parts) (this->*part.write)();
  if (!edit_.is_changed()) return {};
  return std::move(edit_).finish();
}

// With the white space that stood between the first two elements, at the beginning and at the end.
template <typename Write>
void ListRepair::write_list(Span list, const std::vector<Span>& all,
                            const std::vector<uint32_t>& chosen, Write write) {
  const auto between = [this](uint32_t begin, uint32_t end) {
    return text_.substr(begin, end - begin);
  };
  const std::string_view comma = all.size() > 1 ? between(all[0].end, all[1].begin) : ",";
  edit_.copy_until(chosen.empty() ? list.begin + 1 : all.front().begin);
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (i > 0) edit_.write(comma);
    write(i);
  }
  edit_.skip_to(chosen.empty() ? list.end - 1 : all.back().end);
}

void ListRepair::write_samples() {
  const bool is_same =
      samples_.size() == all_samples_ && std::is_sorted(samples_.begin(), samples_.end());
  const bool are_renumbered = stacks_.stacks.is_changed;
  if (is_same && !are_renumbered) return;
  const std::vector<Span> spans = element_spans(text_, *places_.samples);
  write_list(*places_.samples, spans, samples_, [&](size_t i) {
    const Span sample = spans[samples_[i]];
    if (!are_renumbered) return edit_.write(sample.of(text_));
    write_sample(sample, stacks_.stacks.numbers[facts_.samples[i].stack]);
  });
}

void ListRepair::write_sample(Span sample, uint32_t new_stack) {
  const auto stack_id = member_span(text_, sample, "stack_id");
  if (!stack_id) return edit_.write(sample.of(text_));
  edit_.write(Span{sample.begin, stack_id->begin}.of(text_));
  edit_.write(std::to_string(new_stack));
  edit_.write(Span{stack_id->end, sample.end}.of(text_));
}

void ListRepair::write_stacks() {
  const Renumbering& stacks = stacks_.stacks;
  const Renumbering& frames = stacks_.frames;
  if (!stacks.is_changed && !frames.is_changed) return;
  const std::vector<Span> spans =
      stacks.is_changed ? stacks.spans : element_spans(text_, *places_.stacks);
  std::vector<uint32_t> all;
  if (!stacks.is_changed) {
    for (uint32_t i = 0; i < spans.size(); ++i) all.push_back(i);
  }
  const std::vector<uint32_t>& chosen = stacks.is_changed ? stacks.chosen : all;
  std::string stack;
  write_list(*places_.stacks, spans, chosen, [&](size_t i) {
    const std::string_view old = spans[chosen[i]].of(text_);
    if (!frames.is_changed) return edit_.write(old);
    stack.clear();
    append_renumbered(stack, old, frames.numbers);
    edit_.write(stack);
  });
}

void ListRepair::write_frames() {
  const Renumbering& frames = stacks_.frames;
  if (!frames.is_changed) return;
  write_list(*places_.frames, frames.spans, frames.chosen,
             [&](size_t i) { edit_.write(frames.spans[frames.chosen[i]].of(text_)); });
}

void ListRepair::write_thread_names() {
  std::vector<bool> has_samples(facts_.threads.size());
  for (const SampleFact& sample : facts_.samples) has_samples[sample.thread] = true;
  std::vector<std::string_view> used;
  for (size_t i = 0; i < has_samples.size(); ++i) {
    if (has_samples[i]) used.push_back(facts_.threads[i].id);
  }
  write_names(*places_.thread_metadata, std::move(used), Change::ThreadName);
}

void ListRepair::write_queue_names() {
  const std::vector<Span> spans = element_spans(text_, *places_.samples);
  std::deque<std::string> resolved;  // what was written with escapes
  std::vector<std::string_view> used;
  for (const uint32_t i : samples_) {
    const auto queue = member_span(text_, spans[i], "queue_address");
    if (!queue) continue;
    JsonReader reader = JsonReader::at(text_, queue->begin);
    JsonString address;
    if (!reader.try_string(address)) continue;
    std::string buffer;
    used.push_back(address.has_escapes ? resolved.emplace_back(address.text(buffer)) : address.raw);
  }
  write_names(*places_.queue_metadata, std::move(used), Change::QueueName);
}

void ListRepair::write_names(Span names, std::vector<std::string_view> used, Change change) {
  std::sort(used.begin(), used.end());
  JsonReader reader = JsonReader::at(text_, names.begin);
  if (reader.peek() != JsonKind::Object) return;
  reader.begin_object();
  MemberEdit members(edit_);
  JsonString key;
  std::string buffer;
  while (reader.next_member(key)) {
    const auto key_offset = static_cast<size_t>(key.raw.data() - text_.data()) - 1;
    const bool is_used = std::binary_search(used.begin(), used.end(), key.text(buffer));
    if (is_used) members.keep(key_offset);
    reader.skip_value();
    if (is_used) {
      members.end_kept(reader.offset());
    } else {
      members.drop(key_offset, reader.offset());
      changes_.add(change);
    }
  }
  members.close();
}

}  // namespace

std::optional<std::string> mend_lists(std::string_view text, ValidatedKind kind,
                                      ChangeList& changes) {
  if (text.size() > UINT32_MAX) return {};
  ProblemList nobody_reads({});
  ProfileFacts facts = scan_profile(text, kind, nobody_reads);
  if (!facts.is_whole || !facts.samples_are_typed || !facts.stacks_are_typed ||
      !facts.frames_are_typed) {
    return {};
  }
  return ListRepair(text, facts, changes).run();
}

}  // namespace sentry_prof::sentry
