// What JSON is made of, eight or sixteen bytes at a time: how far plain text and digits reach, and
// what digits say. (Bit tricks of "Hacker's Delight", sections 6-1 and 8-2: a subtraction or
// addition in each byte of a word, whose top bit then tells. What carries into the next byte comes
// from a hit, so the first hit is exact, which is all that is used.)
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace sentry_prof::json_words {

constexpr uint64_t each_byte(unsigned char byte) { return uint64_t{0x0101010101010101} * byte; }

// The first byte of the text becomes the lowest one.
inline uint64_t load_8(const char* text) {
  uint64_t word;
  std::memcpy(&word, text, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

// Of a word with some of its bytes' top bits set: the bytes in front of the first one.
inline unsigned bytes_before_first(uint64_t top_bits) {
  return static_cast<unsigned>(std::countr_zero(top_bits)) / 8;
}

// How many of eight bytes stand in front of the first that is not plain: a control character, a
// quote, a backslash, no ASCII.
inline unsigned plain_of_8(const char* text) {
  const uint64_t word = load_8(text);
  const uint64_t control = word - each_byte(0x20);
  const uint64_t quote = (word ^ each_byte('"')) - each_byte(1);
  const uint64_t backslash = (word ^ each_byte('\\')) - each_byte(1);
  return bytes_before_first((control | quote | backslash | word) & each_byte(0x80));
}

#ifdef __SSE2__
// The same of sixteen bytes.
inline unsigned plain_of_16(const char* text) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
  const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
  const __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
  // As signed bytes, those that are not ASCII are less than 0, and so less than the first plain
  // one.
  const __m128i other = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));
  const int hits = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), other));
  return static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(hits) | 0x10000U));
}
#endif

// Where the first character of [text, end) stands that is not plain; `end` if all are.
inline const char* behind_plain(const char* text, const char* end) {
#ifdef __SSE2__
  while (end - text >= 16) {
    const unsigned plain = plain_of_16(text);
    text += plain;
    if (plain < 16) return text;
  }
#endif
  while (end - text >= 8) {
    const unsigned plain = plain_of_8(text);
    text += plain;
    if (plain < 8) return text;
  }
  while (text != end && static_cast<signed char>(*text) >= 0x20 && *text != '"' && *text != '\\')
    ++text;
  return text;
}

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// How many of the eight bytes stand in front of the first that is no digit.
inline unsigned digits_of_8(uint64_t word) {
  const uint64_t values = word ^ each_byte('0');
  return bytes_before_first(((values + each_byte(0x80 - 10)) | values) & each_byte(0x80));
}

// What the first `count` bytes say, digits all; `count` is 1 to 8.
inline uint64_t value_of_digits(uint64_t word, unsigned count) {
  uint64_t values = (word ^ each_byte('0')) << (64 - 8 * count);  // zeros in front
  values = (values * 10 + (values >> 8)) & 0x00FF00FF00FF00FF;
  values = (values * 100 + (values >> 16)) & 0x0000FFFF0000FFFF;
  return (values * 10000 + (values >> 32)) & 0xFFFFFFFF;
}

}  // namespace sentry_prof::json_words
