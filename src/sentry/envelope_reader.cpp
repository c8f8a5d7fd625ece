#include "sentry/envelope_reader.h"

#include "sentry/scalar_forms.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

bool is_null(JsonReader& reader) {
  if (reader.peek() != JsonKind::Null) return false;
  reader.literal();
  return true;
}

// Null stands for nothing. False: another type.
bool read_optional(JsonReader& reader, std::optional<JsonString>& value) {
  if (is_null(reader)) return true;
  if (reader.peek() != JsonKind::String) return false;
  value = reader.string();
  return true;
}

bool read_optional(JsonReader& reader, std::optional<uint64_t>& value) {
  if (is_null(reader)) return true;
  if (reader.peek() != JsonKind::Number) return false;
  value = json_unsigned(reader.number());
  return value.has_value() && *value <= UINT32_MAX;  // Relay keeps lengths in 32 bits
}

bool read_bool(JsonReader& reader, bool& value) {
  const JsonKind kind = reader.peek();
  if (kind != JsonKind::True && kind != JsonKind::False) return false;
  reader.literal();
  value = kind == JsonKind::True;
  return true;
}

// Keys of an item's header that have a type; their places are bits of `seen`.
constexpr std::string_view kItemKeys[] = {"type", "length", "platform", "meta_length", "sampled"};

std::string_view wanted_type(size_t key) {
  constexpr std::string_view kWanted[] = {
      "must be a string", "must be a whole number below 4294967296", "must be a string",
      "must be a whole number below 4294967296", "must be true or false"};
  return kWanted[key];
}

}  // namespace

void EnvelopeReader::fail(EnvelopePart part, size_t offset, std::string what) {
  if (!fault_) fault_ = EnvelopeFault{part, items_, offset, std::move(what)};
}

// Behind a header comes a newline or the end.
bool EnvelopeReader::end_header(EnvelopePart part, const JsonReader& reader) {
  if (reader.failed()) {
    fail(part, reader.fault()->offset, reader.fault()->what);
    return false;
  }
  at_ = reader.offset();
  if (at_ < text_.size() && text_[at_] != '\n') {
    fail(part, at_,
         text_[at_] == '\r'
             ? "a carriage return stands behind this header: end it by a newline alone"
             : "this header must be followed by a newline at once");
    return false;
  }
  at_ = std::min(at_ + 1, text_.size());
  return true;
}

std::optional<EnvelopeHeader> EnvelopeReader::header() {
  EnvelopeHeader header;
  JsonReader reader(text_);
  if (reader.peek() != JsonKind::Object) {
    fail(EnvelopePart::Header, 0, "an envelope begins with a JSON object");
    return std::nullopt;
  }
  header.offset = reader.offset();
  reader.begin_object();
  bool is_event_id_seen = false;
  for (JsonString key; reader.next_member(key);) {
    if (!key.is("event_id")) {
      header.has_type = header.has_type || key.is("type");
      const JsonKind kind = reader.peek();
      if (key.is("sent_at") && kind != JsonKind::String && kind != JsonKind::Null &&
          kind != JsonKind::Malformed) {
        fail(EnvelopePart::Header, reader.offset(),
             "sent_at must be a time in text, as \"2026-01-15T12:00:00Z\", or null");
        return std::nullopt;
      }
      reader.skip_value();
      continue;
    }
    const bool has_type = reader.peek() != JsonKind::Malformed && !is_event_id_seen;
    header.event_id_offset = reader.offset();
    is_event_id_seen = true;
    std::string buffer;
    if (!has_type || !read_optional(reader, header.event_id) ||
        (header.event_id && !parse_uuid(header.event_id->text(buffer)))) {
      fail(EnvelopePart::EventId, header.event_id_offset, "event_id must be 32 hex digits, once");
      return std::nullopt;
    }
  }
  if (!end_header(EnvelopePart::Header, reader)) return std::nullopt;
  return header;
}

bool EnvelopeReader::read_item_member(JsonReader& reader, const JsonString& key, EnvelopeItem& item,
                                      uint32_t& seen) {
  const auto* const known =
      std::find_if(std::begin(kItemKeys), std::end(kItemKeys),
                   [&key](std::string_view candidate) { return key.is(candidate); });
  if (known == std::end(kItemKeys)) {
    reader.skip_value();
    return true;
  }
  const auto place = static_cast<size_t>(known - std::begin(kItemKeys));
  reader.peek();
  const size_t offset = reader.offset();
  std::optional<JsonString> type;
  bool is_good = false;
  switch (place) {
    case 0:
      is_good = read_optional(reader, type) && type.has_value();
      break;
    case 1:
      is_good = read_optional(reader, item.length);
      break;
    case 2:
      is_good = read_optional(reader, item.platform);
      break;
    case 3:
      is_good = read_optional(reader, item.meta_length);
      break;
    default:
      is_good = read_bool(reader, item.is_sampled);
  }
  if (type) item.type = *type;
  if (place == 2) item.platform_offset = offset;
  if (reader.failed()) return true;  // told at the end of the header
  if ((seen & (1U << place)) != 0) {
    fail(EnvelopePart::ItemHeader, offset, fmt::format("a second {}", *known));
  } else if (!is_good) {
    fail(EnvelopePart::ItemHeader, offset, fmt::format("{} {}", *known, wanted_type(place)));
  }
  seen |= 1U << place;
  return !fault_.has_value();
}

bool EnvelopeReader::read_item_header(EnvelopeItem& item) {
  JsonReader reader = JsonReader::at(text_, at_);
  if (reader.peek() != JsonKind::Object) {
    fail(EnvelopePart::ItemHeader, std::min(reader.offset(), text_.size()),
         "an item's header should begin here, a JSON object; if the envelope ends here, let it end "
         "with one newline at most");
    return false;
  }
  item.header_offset = reader.offset();
  reader.begin_object();
  uint32_t seen = 0;
  for (JsonString key; reader.next_member(key);) {
    if (!read_item_member(reader, key, item, seen)) return false;
  }
  if (!end_header(EnvelopePart::ItemHeader, reader)) return false;
  if ((seen & 1U) != 0) return true;
  fail(EnvelopePart::ItemHeader, item.header_offset, "this item's header has no type");
  return false;
}

bool EnvelopeReader::find_measured_payload(EnvelopeItem& item) {
  const size_t left = text_.size() - at_;
  if (*item.length > left) {
    fail(EnvelopePart::LengthTooLarge, item.header_offset,
         fmt::format("length is {}, but only {} bytes follow this header", *item.length, left));
    return false;
  }
  const auto length = static_cast<size_t>(*item.length);
  item.payload = text_.substr(at_, length);
  if (length == left || text_[at_ + length] == '\n') return true;
  const size_t line_end = std::min(text_.find('\n', at_), text_.size());
  fail(EnvelopePart::LengthTooSmall, item.header_offset,
       fmt::format(
           "behind length, {} bytes, comes no newline{}", length,
           line_end > at_ + length
               ? fmt::format("; the line that follows this header has {} bytes", line_end - at_)
               : std::string()));
  return false;
}

bool EnvelopeReader::find_payload(EnvelopeItem& item) {
  item.payload_offset = at_;
  if (item.length) {
    if (!find_measured_payload(item)) return false;
  } else {
    item.payload = text_.substr(at_, text_.find('\n', at_) - at_);
  }
  at_ = std::min(at_ + item.payload.size() + 1, text_.size());
  return true;
}

std::optional<EnvelopeItem> EnvelopeReader::next_item() {
  if (fault_ || at_ >= text_.size()) return std::nullopt;
  EnvelopeItem item;
  item.index = items_;
  if (!read_item_header(item) || !find_payload(item)) return std::nullopt;
  ++items_;
  return item;
}

}  // namespace sentry_prof::sentry
