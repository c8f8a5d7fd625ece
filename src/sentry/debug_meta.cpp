#include "sentry/json_parts.h"

namespace sentry_prof::sentry {
namespace {

// A nil debug_id is written like any other: servers before 2025 require the field, none refuses
// nil, and the image still tells which file its frames lie in.
void write_image(JsonWriter& json, const Image& image) {
  json.begin_object();
  json.member("type", "elf");
  json.member("code_file", image.code_file);
  json.member_if_not_empty("code_id", image.code_id);
  json.member("debug_id", image.debug_id.to_hyphenated());
  json.key("image_addr");
  json.hex_string(image.image_addr);
  json.key("image_size");
  json.number(image.image_size);
  json.key("image_vmaddr");
  json.hex_string(image.image_vmaddr);
  json.member_if_not_empty("arch", image.arch);
  json.end_object();
}

}  // namespace

void write_debug_meta(JsonWriter& json, const Profile& profile) {
  json.key("debug_meta");
  json.begin_object();
  json.key("images");
  json.begin_array();
  for (const Image& image : profile.images) write_image(json, image);
  json.end_array();
  json.end_object();
}

}  // namespace sentry_prof::sentry
