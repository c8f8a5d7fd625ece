// Where in a text something stands that facts tell only by its number: found by reading that part
// of the text once more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::sentry {

// Offsets of the elements with these indices (ascending) of the array whose '[' stands at
// `array_offset`. Where the text ends too early, the array's own offset. One pass, over the array
// up to the last of them.
std::vector<size_t> element_offsets(std::string_view text, size_t array_offset,
                                    std::span<const size_t> indices);

// Offset of the value of the member `key` of the object at `object_offset`; the object's own if it
// has none.
size_t member_offset(std::string_view text, size_t object_offset, std::string_view key);

// The same along a path of keys from the object at the start of the text: the value as far down as
// the path exists.
size_t path_offset(std::string_view text, std::initializer_list<std::string_view> keys);

// For a message: in quotes, without control characters, at most 64 bytes of it.
std::string quoted(std::string_view text);

// RFC 6901: ~ and / of a key, for a pointer.
std::string pointer_token(std::string_view key);

}  // namespace sentry_prof::sentry
