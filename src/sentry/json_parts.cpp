#include "sentry/json_parts.h"

namespace sentry_prof::sentry {
namespace {

void write_stack(JsonWriter& json, std::span<const uint32_t> frame_indices) {
  json.begin_array();
  for (uint32_t index : frame_indices) json.number(index);
  json.end_array();
}

void write_frame(JsonWriter& json, const Profile& profile, const Frame& frame) {
  json.begin_object();
  json.member("function", frame.function);
  json.key("instruction_addr");
  json.hex_string(frame.instruction_addr);
  if (frame.image != Frame::kNoImage) json.member("package", profile.images[frame.image].code_file);
  json.end_object();
}

}  // namespace

void write_stacks(JsonWriter& json, const Profile& profile) {
  json.key("stacks");
  json.begin_array();
  for (uint32_t i = 0; i < profile.stack_count(); ++i) write_stack(json, profile.stack(i));
  json.end_array();
}

void write_frames(JsonWriter& json, const Profile& profile) {
  json.key("frames");
  json.begin_array();
  for (const Frame& frame : profile.frames) write_frame(json, profile, frame);
  json.end_array();
}

// No "priority": the server takes unsigned numbers only, and a negative nice value would cost the
// whole profile.
void write_thread_metadata(JsonWriter& json, const Profile& profile) {
  json.key("thread_metadata");
  json.begin_object();
  for (const Thread& thread : profile.threads) {
    json.key(std::to_string(thread.id));
    json.begin_object();
    json.member("name", thread.name);
    json.end_object();
  }
  json.end_object();
}

size_t expected_json_bytes(const Profile& profile) {
  constexpr size_t kRest_bytes = 4096;
  size_t frame_bytes = 0;
  for (const Frame& frame : profile.frames) {
    frame_bytes += 80 + frame.function.size();
    if (frame.image != Frame::kNoImage) frame_bytes += profile.images[frame.image].code_file.size();
  }
  return kRest_bytes + profile.samples.size() * 80 + profile.stack_frame_indices.size() * 6 +
         profile.stack_begin.size() * 3 + frame_bytes + profile.images.size() * 400 +
         profile.threads.size() * 60;
}

}  // namespace sentry_prof::sentry
