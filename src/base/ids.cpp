#include "base/ids.h"

#include "base/hex.h"

#include <cstddef>
#include <cstring>
#include <random>
#include <span>

namespace sentry_prof {

std::string Uuid::to_hex() const { return sentry_prof::to_hex(std::as_bytes(std::span(bytes))); }

std::string Uuid::to_hyphenated() const {
  std::string text = to_hex();
  for (size_t position : {8u, 13u, 18u, 23u}) text.insert(position, 1, '-');
  return text;
}

Uuid random_uuid_v4() noexcept {
  std::random_device source;
  Uuid uuid;
  for (size_t i = 0; i < uuid.bytes.size(); i += sizeof(unsigned)) {
    const unsigned word = source();
    std::memcpy(&uuid.bytes[i], &word, sizeof(word));
  }
  uuid.bytes[6] = static_cast<uint8_t>((uuid.bytes[6] & 0x0f) | 0x40);  // version 4
  uuid.bytes[8] = static_cast<uint8_t>((uuid.bytes[8] & 0x3f) | 0x80);  // RFC 4122 variant
  return uuid;
}

}  // namespace sentry_prof
