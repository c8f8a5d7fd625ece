#include "upload/spool_name.h"

#include <array>

#include <fmt/core.h>

namespace sentry_prof::upload {

namespace {

constexpr std::string_view kEnding = ".envelope";
constexpr size_t kNumberDigits = 16;

struct Letter {
  Category category;
  char letter;
};
constexpr std::array<Letter, kCategoryCount> kLetters = {{{Category::ProfileChunk, 'c'},
                                                          {Category::ProfileChunkUi, 'u'},
                                                          {Category::Profile, 'p'},
                                                          {Category::Transaction, 't'}}};

struct Packing {
  BodyEncoding encoding;
  std::string_view ending;
};
constexpr std::array<Packing, 3> kPackings = {
    {{BodyEncoding::Gzip, ".gz"}, {BodyEncoding::Zstd, ".zst"}, {BodyEncoding::Identity, ""}}};

// 16 lower-case hex digits, which are taken from `text`.
std::optional<uint64_t> take_hex_digits(std::string_view& text) {
  if (text.size() < kNumberDigits) return std::nullopt;
  uint64_t number = 0;
  for (const char c : text.substr(0, kNumberDigits)) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) return std::nullopt;
    number = number << 4 | digit;
  }
  text.remove_prefix(kNumberDigits);
  return number;
}

bool take(std::string_view& text, char wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string to_text(const SpoolName& name) {
  std::string text = fmt::format("{:016x}-{:016x}-{:016x}-{:016x}", name.kept_unix_ns, name.number,
                                 name.identity, name.checksum);
  if (name.destination != 0) text += fmt::format("-{:016x}", name.destination);
  text += '.';
  for (const Letter& known : kLetters) {
    if (name.categories.has(known.category)) text += known.letter;
  }
  for (const Packing& packing : kPackings) {
    if (packing.encoding == name.encoding) text += packing.ending;
  }
  return text.append(kEnding);
}

std::optional<SpoolName> parse_spool_name(std::string_view text) {
  const std::string_view whole = text;
  SpoolName name;
  uint64_t* const numbers[] = {&name.kept_unix_ns, &name.number, &name.identity, &name.checksum,
                               &name.destination};
  for (uint64_t* const number : numbers) {
    const bool is_next = number == numbers[0] || take(text, '-');
    if (!is_next && number == &name.destination) break;
    const auto value = is_next ? take_hex_digits(text) : std::nullopt;
    if (!value) return std::nullopt;
    *number = *value;
  }
  if (!take(text, '.')) return std::nullopt;
  for (const Letter& known : kLetters) {
    if (take(text, known.letter)) name.categories = name.categories | known.category;
  }
  for (const Packing& packing : kPackings) {
    if (!text.starts_with(packing.ending)) continue;
    name.encoding = packing.encoding;
    break;
  }
  // One name, one meaning: what is left over, or out of order, is not ours.
  if (name.categories.empty() || to_text(name) != whole) return std::nullopt;
  return name;
}

uint64_t destination_of(const sentry::Dsn& dsn) {
  const uint64_t hash = checksum_of(fmt::format("{}/{}", dsn.host(), dsn.project_id()));
  return hash == 0 ? 1 : hash;
}

uint64_t checksum_of(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace sentry_prof::upload
