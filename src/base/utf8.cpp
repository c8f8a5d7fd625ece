#include "base/utf8.h"

#include <cstdint>

namespace sentry_prof {
namespace {

uint8_t byte_at(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

struct LeadByte {
  size_t length = 0;                             // of the whole sequence; 0 for no legal first byte
  uint8_t second_min = 0x80, second_max = 0xbf;  // what may follow it
};

// Unicode 15, table 3-7.
LeadByte lead_byte(uint8_t first) {
  if (first < 0x80) return {1};
  if (first < 0xc2) return {0};
  if (first < 0xe0) return {2};
  if (first == 0xe0) return {3, 0xa0, 0xbf};
  if (first == 0xed) return {3, 0x80, 0x9f};
  if (first < 0xf0) return {3};
  if (first == 0xf0) return {4, 0x90, 0xbf};
  if (first < 0xf4) return {4};
  if (first == 0xf4) return {4, 0x80, 0x8f};
  return {0};
}

// Bytes that fit the pattern of the first one's sequence.
size_t matching_bytes(std::string_view text, const LeadByte& lead) {
  size_t count = 1;
  while (count < lead.length && count < text.size()) {
    const uint8_t byte = byte_at(text, count);
    const uint8_t min = count == 1 ? lead.second_min : 0x80;
    const uint8_t max = count == 1 ? lead.second_max : 0xbf;
    if (byte < min || byte > max) break;
    ++count;
  }
  return count;
}

bool is_control(std::string_view sequence) {
  const uint8_t first = byte_at(sequence, 0);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  return sequence.size() == 2 && first == 0xc2 && byte_at(sequence, 1) < 0xa0;  // U+0080..U+009F
}

}  // namespace

size_t utf8_sequence_length(std::string_view text) {
  if (text.empty()) return 0;
  const LeadByte lead = lead_byte(byte_at(text, 0));
  if (lead.length == 0 || matching_bytes(text, lead) != lead.length) return 0;
  return lead.length;
}

size_t utf8_bad_length(std::string_view text) {
  const LeadByte lead = lead_byte(byte_at(text, 0));
  return lead.length == 0 ? 1 : matching_bytes(text, lead);
}

size_t printable_ascii_length(std::string_view text) {
  size_t length = 0;
  while (length < text.size() && text[length] >= 0x20 && text[length] < 0x7f) ++length;
  return length;
}

std::string printable_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (;;) {
    const size_t plain = printable_ascii_length(text);
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t length = utf8_sequence_length(text);
    const bool is_good = length != 0 && !is_control(text.substr(0, length));
    const size_t consumed = length != 0 ? length : utf8_bad_length(text);
    result += is_good ? text.substr(0, consumed) : kReplacementCharacter;
    text.remove_prefix(consumed);
  }
  return result;
}

std::string shortened_utf8(std::string_view text, size_t max_bytes) {
  static constexpr std::string_view kEllipsis = "\xe2\x80\xa6";
  if (text.size() <= max_bytes) return std::string(text);
  size_t keep = max_bytes < kEllipsis.size() ? 0 : max_bytes - kEllipsis.size();
  while (keep > 0 && (byte_at(text, keep) & 0xc0) == 0x80) --keep;
  std::string result;
  result.reserve(keep + kEllipsis.size());
  result += text.substr(0, keep);
  if (max_bytes >= kEllipsis.size()) result += kEllipsis;
  return result;
}

std::string without_middle(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const size_t head_bytes = max_bytes / 4;
  size_t tail = text.size() - (max_bytes - head_bytes);
  while (tail < text.size() && (byte_at(text, tail) & 0xc0) == 0x80) ++tail;
  std::string result = shortened_utf8(text, head_bytes);
  return result += text.substr(tail);
}

}  // namespace sentry_prof
