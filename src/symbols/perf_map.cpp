#include "symbols/perf_map.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace sentry_prof::symbols {

namespace {

// A longer line is a bad one. Names of generic methods take some kilobytes.
constexpr size_t kMapPiece_bytes = 64 * 1024;
constexpr size_t kMaxMapName_bytes = 1024;

// A hostile map could let each of a million lines hold all addresses. Real ones hold an address a
// few times. So much takes less than a second; the names that were found until then stay.
constexpr uint64_t kMaxMapComparisons = 1 << 24;

struct Line {
  uint64_t begin = 0;
  uint64_t size_bytes = 0;
  std::string_view name;
};

// Takes "HEX " from the front. Some compilers write "0x" first; perf takes that, too.
std::optional<uint64_t> take_number(std::string_view& text) {
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
  const std::optional<uint64_t> begin = take_number(text);
  const std::optional<uint64_t> size_bytes = begin ? take_number(text) : std::nullopt;
  if (!size_bytes || text.empty()) return std::nullopt;
  return Line{*begin, *size_bytes, text};
}

// Calls `take` with each whole line of the file, and with none for each that is too long.
template <typename Take>
void for_each_line(const ByteSource& file, Take take) {
  std::string buffer;
  bool is_too_long = false;
  uint64_t left = std::min(file.size_bytes(), kMaxPerfMap_bytes);
  for (uint64_t offset = 0; left > 0;) {
    const size_t kept = buffer.size();
    const auto asked = static_cast<size_t>(std::min<uint64_t>(left, kMapPiece_bytes));
    buffer.resize(kept + asked);
    if (!file.read_at(offset, std::as_writable_bytes(std::span(buffer).subspan(kept)))) return;
    offset += asked;
    left -= asked;
    size_t begin = 0;
    for (size_t end = 0; (end = buffer.find('\n', begin)) != buffer.npos; begin = end + 1) {
      take(is_too_long ? std::string_view() : std::string_view(buffer).substr(begin, end - begin));
      is_too_long = false;
    }
    buffer.erase(0, begin);
    if (buffer.size() >= kMapPiece_bytes) {
      is_too_long = true;
      buffer.clear();
    }
  }
}

class NamesOfAddresses {
 public:
  explicit NamesOfAddresses(std::span<const RuntimeAddress> sorted_addresses)
      : addresses_(sorted_addresses), names_(sorted_addresses.size()) {}

  // Lines are only views: what is kept of one is its name, at the addresses that it holds.
  void add(const Line& line) {
    const auto first = std::ranges::lower_bound(addresses_, line.begin, {}, &RuntimeAddress::value);
    const std::string_view name = line.name.substr(0, kMaxMapName_bytes);
    for (auto i = static_cast<size_t>(first - addresses_.begin());
         i < addresses_.size() && addresses_[i].value - line.begin < line.size_bytes; ++i) {
      if (comparisons_left_ == 0) return;
      --comparisons_left_;
      names_[i] = name;
    }
  }

  std::vector<std::optional<std::string>> take() { return std::move(names_); }

 private:
  std::span<const RuntimeAddress> addresses_;
  std::vector<std::optional<std::string>> names_;
  uint64_t comparisons_left_ = kMaxMapComparisons;
};

}  // namespace

PerfMapNames names_in_perf_map(const ByteSource& file,
                               std::span<const RuntimeAddress> sorted_addresses) {
  NamesOfAddresses names(sorted_addresses);
  PerfMapNames result;
  for_each_line(file, [&](std::string_view text) {
    if (const auto line = parse_line(text)) {
      names.add(*line);
    } else {
      ++result.bad_lines;
    }
  });
  result.names = names.take();
  return result;
}

}  // namespace sentry_prof::symbols
