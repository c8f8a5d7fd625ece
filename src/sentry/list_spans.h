// Where the lists of a profile and their elements stand in its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sentry_prof::sentry {

// 32 bits: there may be millions.
struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;

  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

// Values of members of /profile.
struct ListPlaces {
  std::optional<Span> samples, stacks, frames, thread_metadata, queue_metadata;
};

// `text` is one JSON object of less than 4 GiB; of a key that is there twice the last one counts.
ListPlaces find_lists(std::string_view text);

// Elements of the array at `list`.
std::vector<Span> element_spans(std::string_view text, Span list);

// The value of the member `key` of the object at `object`, if it has one.
std::optional<Span> member_span(std::string_view text, Span object, std::string_view key);

}  // namespace sentry_prof::sentry
