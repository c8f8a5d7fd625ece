#include "sentry/list_spans.h"

#include "base/json_reader.h"

namespace sentry_prof::sentry {

namespace {

Span skip_span(JsonReader& reader) {
  reader.peek();
  const auto begin = static_cast<uint32_t>(reader.offset());
  reader.skip_value();
  return {begin, static_cast<uint32_t>(reader.offset())};
}

void find_in_profile(std::string_view text, Span profile, ListPlaces& places) {
  JsonReader reader = JsonReader::at(text, profile.begin);
  if (reader.peek() != JsonKind::Object) return;
  reader.begin_object();
  JsonString key;
  while (reader.next_member(key)) {
    const Span value = skip_span(reader);
    if (key.is("samples")) places.samples = value;
    if (key.is("stacks")) places.stacks = value;
    if (key.is("frames")) places.frames = value;
    if (key.is("thread_metadata")) places.thread_metadata = value;
    if (key.is("queue_metadata")) places.queue_metadata = value;
  }
}

}  // namespace

ListPlaces find_lists(std::string_view text) {
  ListPlaces places;
  JsonReader reader(text);
  reader.peek();
  const auto top = static_cast<uint32_t>(reader.offset());
  const auto profile = member_span(text, {top, top}, "profile");
  if (profile) find_in_profile(text, *profile, places);
  return places;
}

std::vector<Span> element_spans(std::string_view text, Span list) {
  std::vector<Span> spans;
  JsonReader reader = JsonReader::at(text, list.begin);
  if (reader.peek() != JsonKind::Array) return spans;
  reader.begin_array();
  while (reader.next_element()) spans.push_back(skip_span(reader));
  return spans;
}

std::optional<Span> member_span(std::string_view text, Span object, std::string_view key) {
  JsonReader reader = JsonReader::at(text, object.begin);
  if (reader.peek() != JsonKind::Object) return {};
  reader.begin_object();
  JsonString found;
  while (reader.next_member(found)) {
    const Span value = skip_span(reader);
    if (found.is(key)) return value;
  }
  return {};
}

}  // namespace sentry_prof::sentry
