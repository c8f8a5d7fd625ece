#include "symbols/perf_map.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace sentry_prof::symbols {

namespace {

// No line is longer: names of generic methods take some kilobytes.
constexpr size_t kMapPiece_bytes = 64 * 1024;
constexpr size_t kMaxMapName_bytes = 1024;
// Comparing an address and copying a short name cost the same.
constexpr size_t kNameUnit_bytes = 64;

struct Line {
  uint64_t begin = 0;
  uint64_t size_bytes = 0;
  std::string_view name;
};

// Takes "HEX " from the front. Some compilers write "0x" first; perf takes that, too.
std::optional<uint64_t> take_hex_word(std::string_view& text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const auto used = static_cast<size_t>(stop - text.data());
  if (error != std::errc() || used == text.size() || text[used] != ' ') return std::nullopt;
  text.remove_prefix(used + 1);
  return value;
}

std::optional<Line> parse_line(std::string_view text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  const std::optional<uint64_t> begin = take_hex_word(text);
  const std::optional<uint64_t> size_bytes = begin ? take_hex_word(text) : std::nullopt;
  if (!size_bytes || text.empty()) return std::nullopt;
  return Line{*begin, *size_bytes, text};
}

// Calls `take` with each whole line from `offset` on; what is longer than a piece is none.
template <typename Take>
void for_each_line(const ByteSource& file, uint64_t offset, Take take) {
  std::string buffer;
  bool is_within_line = offset > 0;  // whose beginning is not in the buffer
  while (offset < file.size_bytes()) {
    const size_t kept = buffer.size();
    const auto asked =
        static_cast<size_t>(std::min<uint64_t>(file.size_bytes() - offset, kMapPiece_bytes));
    buffer.resize(kept + asked);
    if (!file.read_at(offset, std::as_writable_bytes(std::span(buffer).subspan(kept)))) return;
    offset += asked;
    size_t begin = 0;
    for (size_t end = 0; (end = buffer.find('\n', begin)) != buffer.npos; begin = end + 1) {
      if (!std::exchange(is_within_line, false)) {
        take(std::string_view(buffer).substr(begin, end - begin));
      }
    }
    buffer.erase(0, begin);
    if (buffer.size() < kMapPiece_bytes) continue;
    if (!std::exchange(is_within_line, true)) take(std::string_view(buffer).substr(0, 0));
    buffer.clear();
  }
}

// The names of the addresses that the line holds. False if the budget did not suffice.
bool add_names(const Line& line, std::span<const RuntimeAddress> addresses, uint64_t& comparisons,
               std::vector<std::optional<std::string>>& names) {
  const auto first = std::ranges::lower_bound(addresses, line.begin, {}, &RuntimeAddress::value);
  const std::string_view name = line.name.substr(0, kMaxMapName_bytes);
  const uint64_t cost = 1 + name.size() / kNameUnit_bytes;
  for (auto i = static_cast<size_t>(first - addresses.begin());
       i < addresses.size() && addresses[i].value - line.begin < line.size_bytes; ++i) {
    if (comparisons < cost) return false;
    comparisons -= cost;
    names[i] = name;
  }
  return true;
}

}  // namespace

PerfMapNames names_in_perf_map(const ByteSource& file,
                               std::span<const RuntimeAddress> sorted_addresses,
                               PerfMapBudget& budget) {
  const uint64_t bytes = std::min({file.size_bytes(), kMaxPerfMap_bytes, budget.bytes});
  budget.bytes -= bytes;
  PerfMapNames result;
  result.names.resize(sorted_addresses.size());
  result.is_cut = bytes < file.size_bytes();
  for_each_line(file, file.size_bytes() - bytes, [&](std::string_view text) {
    const auto line = parse_line(text);
    if (!line) {
      ++result.bad_lines;
    } else if (!add_names(*line, sorted_addresses, budget.comparisons, result.names)) {
      result.is_cut = true;
    }
  });
  return result;
}

}  // namespace sentry_prof::symbols
