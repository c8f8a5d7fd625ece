// What a text is: an envelope or a profile, of which kind an item's payload and a profile are.
#pragma once

#include "base/json_reader.h"
#include "sentry_prof/validate.h"

#include <cstdint>
#include <string_view>

namespace sentry_prof::sentry {

// Other: of Relay's item types, none of a profile; Unknown: the server drops it.
enum class ItemKind : uint8_t { V1, V2, Transaction, Other, Unknown };

ItemKind item_kind_of(const JsonString& type);

// Is this an envelope, rather than a profile? Also one that the server refuses as such: behind the
// first line stands an item's header, or the first line is one. Else its first object has none of a
// profile's keys; it has one that only an envelope's header has, or another object behind it. Reads
// two lines, of which headers are no longer than 64 KiB, and up to the first key that tells. Any
// bytes are fine.
bool looks_like_envelope(std::string_view text);

// Which of the two is `text` by its fields? Unknown if it is no object. Reads as little of it as
// tells: at most as far as `profile` where the ids stand in front of that.
ValidatedKind profile_kind(std::string_view text);

}  // namespace sentry_prof::sentry
