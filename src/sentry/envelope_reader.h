// An envelope's structure: a header line, then items, each of a header line and a payload. Reads as
// Sentry's server does, item by item, with memory that does not depend on the text. Sources:
// Sentry's envelope format, Relay's parser of envelopes.
#pragma once

#include "base/json_reader.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sentry_prof::sentry {

struct EnvelopeHeader {
  size_t offset = 0;  // of its '{'
  std::optional<JsonString> event_id;
  size_t event_id_offset = 0;
  bool has_type = false;  // as an item's header has; the server does not mind
};

struct EnvelopeItem {
  size_t index = 0;
  size_t header_offset = 0;  // of its '{'
  JsonString type;
  std::optional<uint64_t> length;  // as written
  std::optional<JsonString> platform;
  size_t platform_offset = 0;
  std::optional<uint64_t> meta_length;
  bool is_sampled = true;
  size_t payload_offset = 0;
  std::string_view payload;
};

// Chunks of these count as profiles of user interfaces, in a category of their own. Source: Relay's
// data categories (ProfileChunkUi).
inline bool is_ui_platform(std::string_view platform) {
  return platform == "cocoa" || platform == "android" || platform == "javascript";
}

enum class EnvelopePart : uint8_t { Header, EventId, ItemHeader, LengthTooSmall, LengthTooLarge };

// Why the server refuses the envelope as a whole.
struct EnvelopeFault {
  EnvelopePart part = EnvelopePart::Header;
  size_t item = 0;  // its index, unless the envelope's own header is at fault
  size_t offset = 0;
  std::string what;
};

class EnvelopeReader {
 public:
  // `text` must outlive the reader and what it returns.
  explicit EnvelopeReader(std::string_view text) : text_(text) {}

  // First of all, once. Nothing if it is faulty.
  std::optional<EnvelopeHeader> header();
  // Nothing behind the last one, and from a fault on.
  std::optional<EnvelopeItem> next_item();

  const std::optional<EnvelopeFault>& fault() const { return fault_; }

 private:
  void fail(EnvelopePart part, size_t offset, std::string what);
  bool end_header(EnvelopePart part, const JsonReader& reader);
  bool read_item_member(JsonReader& reader, const JsonString& key, EnvelopeItem& item,
                        uint32_t& seen);
  bool read_item_header(EnvelopeItem& item);
  bool find_payload(EnvelopeItem& item);
  bool find_measured_payload(EnvelopeItem& item);

  std::string_view text_;
  size_t at_ = 0;
  size_t items_ = 0;
  std::optional<EnvelopeFault> fault_;
};

}  // namespace sentry_prof::sentry
