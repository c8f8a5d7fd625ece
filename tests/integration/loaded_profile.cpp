#include "loaded_profile.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include <simdjson.h>

namespace sentry_prof::testing {

namespace {

using simdjson::dom::element;

[[noreturn]] void refuse(const std::string& what) {
  throw std::runtime_error("unreadable profile: " + what);
}

std::string text_or_empty(const element& object, std::string_view key) {
  std::string_view text;
  if (object[key].get(text) != simdjson::SUCCESS) return "";
  return std::string(text);
}

// V1 writes some numbers as strings, addresses are hexadecimal strings.
uint64_t parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) refuse(std::string(text));
  return value;
}

uint64_t number_of(const element& value) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return parse_number(text);
  return uint64_t{value};
}

element child(const element& object, std::string_view key) {
  element found;
  if (object[key].get(found) != simdjson::SUCCESS) refuse("no key " + std::string(key));
  return found;
}

void load_images(const element& top, std::vector<LoadedImage>& images) {
  for (const element& entry : child(child(top, "debug_meta"), "images").get_array()) {
    LoadedImage image;
    image.type = text_or_empty(entry, "type");
    image.code_file = text_or_empty(entry, "code_file");
    image.debug_id = text_or_empty(entry, "debug_id");
    image.code_id = text_or_empty(entry, "code_id");
    image.arch = text_or_empty(entry, "arch");
    image.begin = number_of(child(entry, "image_addr"));
    image.end = image.begin + number_of(child(entry, "image_size"));
    images.push_back(std::move(image));
  }
}

size_t image_at(const std::vector<LoadedImage>& images, uint64_t address) {
  size_t found = LoadedFrame::kNoImage;
  for (size_t i = 0; i < images.size(); ++i) {
    if (address < images[i].begin || address >= images[i].end) continue;
    if (found != LoadedFrame::kNoImage) {
      refuse("an address in both " + images[found].code_file + " and " + images[i].code_file);
    }
    found = i;
  }
  return found;
}

void load_frames(const element& profile, LoadedProfile& out) {
  for (const element& entry : child(profile, "frames").get_array()) {
    LoadedFrame frame;
    frame.function = text_or_empty(entry, "function");
    frame.address = number_of(child(entry, "instruction_addr"));
    frame.image = image_at(out.images, frame.address);
    out.frames.push_back(std::move(frame));
  }
}

std::vector<std::vector<size_t>> load_stacks(const element& profile, size_t frame_count) {
  std::vector<std::vector<size_t>> stacks;
  for (const element& entry : child(profile, "stacks").get_array()) {
    std::vector<size_t>& stack = stacks.emplace_back();
    for (const element& frame : entry.get_array()) {
      stack.push_back(uint64_t{frame});
      if (stack.back() >= frame_count) refuse("a stack with a frame that is not there");
    }
  }
  return stacks;
}

int64_t time_of(const element& sample) {
  element time;
  if (sample["timestamp"].get(time) == simdjson::SUCCESS) {
    return std::llround(double{time} * 1e6) * 1000;  // microseconds are what is written
  }
  return static_cast<int64_t>(number_of(child(sample, "elapsed_since_start_ns")));
}

void load_samples(const element& profile, LoadedProfile& out) {
  const auto stacks = load_stacks(profile, out.frames.size());
  for (const element& entry : child(profile, "samples").get_array()) {
    LoadedSample sample;
    sample.time_ns = time_of(entry);
    sample.thread_id = text_or_empty(entry, "thread_id");
    const uint64_t stack = number_of(child(entry, "stack_id"));
    if (stack >= stacks.size()) refuse("a sample with a stack that is not there");
    sample.stack = stacks[stack];
    out.samples.push_back(std::move(sample));
  }
}

void load_threads(const element& profile, LoadedProfile& out) {
  for (const auto& [id, thread] : child(profile, "thread_metadata").get_object()) {
    out.thread_names.emplace(std::string(id), text_or_empty(thread, "name"));
  }
}

void load_head(const element& top, LoadedProfile& out) {
  out.version = text_or_empty(top, "version");
  out.platform = text_or_empty(top, "platform");
  out.release = text_or_empty(top, "release");
  out.environment = text_or_empty(top, "environment");
  out.event_id = text_or_empty(top, "event_id");
  out.timestamp = text_or_empty(top, "timestamp");
  out.chunk_id = text_or_empty(top, "chunk_id");
  out.profiler_id = text_or_empty(top, "profiler_id");
  element transaction;
  if (top["transaction"].get(transaction) != simdjson::SUCCESS) return;
  out.transaction_id = text_or_empty(transaction, "id");
  out.trace_id = text_or_empty(transaction, "trace_id");
  out.active_thread_id = text_or_empty(transaction, "active_thread_id");
}

}  // namespace

LoadedProfile LoadedProfile::load(const std::string& path) {
  simdjson::dom::parser parser;
  element top;
  if (const auto error = parser.load(path).get(top)) {
    refuse(path + ": " + simdjson::error_message(error));
  }
  LoadedProfile out;
  out.path = path;
  load_head(top, out);
  load_images(top, out.images);
  const element profile = child(top, "profile");
  load_frames(profile, out);
  load_samples(profile, out);
  load_threads(profile, out);
  return out;
}

const std::string& LoadedProfile::leaf(const LoadedSample& sample) const {
  return frames[sample.stack.front()].function;
}

const std::string& LoadedProfile::root(const LoadedSample& sample) const {
  return frames[sample.stack.back()].function;
}

int LoadedProfile::index_of(const LoadedSample& sample, std::string_view function) const {
  for (size_t i = 0; i < sample.stack.size(); ++i) {
    if (frames[sample.stack[i]].function == function) return static_cast<int>(i);
  }
  return -1;
}

bool LoadedProfile::contains(const LoadedSample& sample, std::string_view function) const {
  return index_of(sample, function) >= 0;
}

std::string_view LoadedProfile::code_file(const LoadedFrame& frame) const {
  return frame.image == LoadedFrame::kNoImage ? ""
                                              : std::string_view(images[frame.image].code_file);
}

std::vector<const LoadedSample*> LoadedProfile::busy_samples(std::string_view thread_id) const {
  std::vector<const LoadedSample*> found;
  for (const LoadedSample& sample : samples) {
    if (sample.stack.empty()) continue;
    if (thread_id.empty() || sample.thread_id == thread_id) found.push_back(&sample);
  }
  return found;
}

double LoadedProfile::share_of_samples(const std::function<bool(const LoadedSample&)>& matches,
                                       std::string_view thread_id) const {
  const auto busy = busy_samples(thread_id);
  if (busy.empty()) return 0;
  const auto count = std::count_if(busy.begin(), busy.end(),
                                   [&](const LoadedSample* sample) { return matches(*sample); });
  return static_cast<double>(count) / static_cast<double>(busy.size());
}

double LoadedProfile::share_with_leaf(std::string_view function, std::string_view thread_id) const {
  return share_of_samples([&](const LoadedSample& s) { return leaf(s) == function; }, thread_id);
}

double LoadedProfile::share_containing(std::string_view function,
                                       std::string_view thread_id) const {
  return share_of_samples([&](const LoadedSample& s) { return contains(s, function); }, thread_id);
}

double LoadedProfile::share_with_frame(const FramePredicate& matches,
                                       std::string_view thread_id) const {
  const auto has_match = [&](const LoadedSample& sample) {
    return std::any_of(sample.stack.begin(), sample.stack.end(),
                       [&](size_t frame) { return matches(frames[frame]); });
  };
  return share_of_samples(has_match, thread_id);
}

size_t LoadedProfile::idle_markers(std::string_view thread_id) const {
  return static_cast<size_t>(std::count_if(samples.begin(), samples.end(), [&](const auto& sample) {
    return sample.stack.empty() && (thread_id.empty() || sample.thread_id == thread_id);
  }));
}

std::set<std::string> LoadedProfile::thread_ids() const {
  std::set<std::string> ids;
  for (const LoadedSample& sample : samples) ids.insert(sample.thread_id);
  return ids;
}

std::set<std::string> LoadedProfile::threads_named(std::string_view part_of_name) const {
  std::set<std::string> ids;
  for (const std::string& id : thread_ids()) {
    const auto found = thread_names.find(id);
    if (found != thread_names.end() && found->second.find(part_of_name) != std::string::npos) {
      ids.insert(id);
    }
  }
  return ids;
}

size_t LoadedProfile::images_whose_file_contains(std::string_view part_of_path) const {
  return static_cast<size_t>(std::count_if(images.begin(), images.end(), [&](const auto& image) {
    return image.code_file.find(part_of_path) != std::string::npos;
  }));
}

}  // namespace sentry_prof::testing
