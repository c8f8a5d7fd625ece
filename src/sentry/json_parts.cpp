#include "sentry/json_parts.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace sentry_prof::sentry {
namespace {

void write_stack(JsonWriter& json, std::span<const uint32_t> frame_indices) {
  constexpr size_t kPiece = 16;
  constexpr size_t kLongestIndex = std::string_view("4294967295,").size();
  static_assert(kPiece * kLongestIndex <= ShortText::kCapacity);
  json.begin_array();
  while (!frame_indices.empty()) {
    const auto piece = frame_indices.first(std::min(frame_indices.size(), kPiece));
    frame_indices = frame_indices.subspan(piece.size());
    ShortText text;
    text.number(piece.front());
    for (uint32_t index : piece.subspan(1)) text.text(",").number(index);
    json.raw(text.view());
  }
  json.end_array();
}

// A file, and not below /lib, /usr/lib and what distributions keep beside them for other ABIs.
bool is_of_application(std::string_view path) {
  constexpr std::string_view kUsr = "/usr";
  if (path.starts_with("/usr/")) path.remove_prefix(kUsr.size());
  static constexpr std::string_view kSystem[] = {"/lib/", "/lib32/", "/lib64/", "/libx32/"};
  return path.starts_with('/') &&
         std::none_of(std::begin(kSystem), std::end(kSystem),
                      [&](std::string_view directory) { return path.starts_with(directory); });
}

// Code that was compiled while the program ran has no file, but without a package Sentry takes no
// frame for the application's.
constexpr std::string_view kCompiledPackage = "[jit]";

// What the frames of one package have in common, as JSON members. Sentry itself decides for "rust"
// what belongs to the application. For other platforms it takes the frame's word, if the frame
// names the profile's platform.
std::string members_of_package(const Profile& profile, std::string_view package) {
  std::string members;
  JsonWriter json(members);
  if (!package.empty()) json.member("package", package);
  const std::string& platform = profile.session.platform;
  if (platform == "rust") return members;
  json.member("platform", platform);
  json.key("in_app");
  json.boolean(package == kCompiledPackage || is_of_application(package));
  return members;
}

void write_frame(JsonWriter& json, const Frame& frame, std::string_view package_members) {
  json.begin_object();
  json.member("function", frame.function);
  json.key("instruction_addr");
  json.hex_string(frame.instruction_addr);
  if (!package_members.empty()) json.raw(package_members);
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
  const std::string outside = members_of_package(profile, "");
  const std::string compiled = members_of_package(profile, kCompiledPackage);
  std::vector<std::string> members;
  for (const Image& image : profile.images) {
    members.push_back(members_of_package(profile, image.code_file));
  }
  for (const Frame& frame : profile.frames) {
    const bool has_image = frame.image != Frame::kNoImage;
    const std::string& imageless = frame.is_compiled ? compiled : outside;
    write_frame(json, frame, has_image ? members[frame.image] : imageless);
  }
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
    frame_bytes += 120 + frame.function.size();
    if (frame.image != Frame::kNoImage) frame_bytes += profile.images[frame.image].code_file.size();
  }
  return kRest_bytes + profile.samples.size() * 80 + profile.stack_frame_indices.size() * 6 +
         profile.stack_begin.size() * 3 + frame_bytes + profile.images.size() * 400 +
         profile.threads.size() * 60;
}

}  // namespace sentry_prof::sentry
