// The text of /proc/PID/maps. Source: proc_pid_maps(5), show_map_vma() in fs/proc/task_mmu.c.
#include "target/mapping_kind.h"
#include "target/proc.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace sentry_prof::target {

namespace {

// Cuts off the next field and the one separator behind it.
bool take_until(std::string_view& line, char separator, std::string_view& field) {
  const size_t end = line.find(separator);
  if (end == line.npos) return false;
  field = line.substr(0, end);
  line.remove_prefix(end + 1);
  return true;
}

template <typename T>
bool take_number_until(std::string_view& line, char separator, int base, T& value) {
  std::string_view field;
  if (!take_until(line, separator, field)) return false;
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value, base);
  return error == std::errc() && stop == end;
}

// The kernel escapes a newline in a path, and nothing else: not the backslash either.
std::string without_escapes(std::string_view path) {
  constexpr std::string_view kNewline = "\\012";
  std::string result;
  for (;;) {
    const size_t escape = path.find(kNewline);
    result += path.substr(0, escape);
    if (escape == path.npos) return result;
    result += '\n';
    path.remove_prefix(escape + kNewline.size());
  }
}

bool is_same_inode(const MappingFacts& a, const MappingFacts& b) {
  return a.inode == b.inode && a.device_major == b.device_major && a.device_minor == b.device_minor;
}

struct Line {
  MappingFacts mapping;   // without its path
  std::string_view path;  // escaped; may be missing
  bool is_executable = false;
  bool is_read_only = false;  // or executable as well; not what cannot be read

  uint64_t end() const { return mapping.begin.value + mapping.size_bytes; }
  bool is_of_file() const { return kind_of_mapping(path) == MappingKind::File; }
  bool is_of_same_file(const Line& other) const {
    return is_same_inode(mapping, other.mapping) && path == other.path;
  }
  MappingFacts with_path() const {
    MappingFacts facts = mapping;
    facts.path = without_escapes(path);
    return facts;
  }
};

// "55d0c0a00000-55d0c0a28000 r-xp 00001000 fe:00 123456      /usr/bin/cat"
bool parse_line(std::string_view line, Line& result) {
  MappingFacts& mapping = result.mapping;
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string_view permissions;
  if (!take_number_until(line, '-', 16, begin) || !take_number_until(line, ' ', 16, end) ||
      end <= begin) {
    return false;
  }
  if (!take_until(line, ' ', permissions) || permissions.size() != 4) return false;
  if (!take_number_until(line, ' ', 16, mapping.file_offset) ||
      !take_number_until(line, ':', 16, mapping.device_major) ||
      !take_number_until(line, ' ', 16, mapping.device_minor)) {
    return false;
  }
  // Linux pads the line with blanks only where a path follows.
  const size_t inode_end = std::min(line.find(' '), line.size());
  const char* inode_stop = line.data() + inode_end;
  const auto [stop, error] = std::from_chars(line.data(), inode_stop, mapping.inode);
  if (error != std::errc() || stop != inode_stop) return false;
  const size_t path = line.find_first_not_of(' ', inode_end);

  mapping.begin = {begin};
  mapping.size_bytes = end - begin;
  result.is_executable = permissions[2] == 'x';
  result.is_read_only = permissions[0] == 'r' && permissions[1] != 'w';
  if (path != line.npos) result.path = line.substr(path);
  return true;
}

template <typename Use>
void for_each_line(std::string_view text, uint32_t pid, Use use) {
  while (!text.empty()) {
    const size_t line_end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 1, text.size()));
    if (line.empty()) continue;
    Line parsed;
    parsed.mapping.pid = pid;
    if (parse_line(line, parsed)) use(parsed);
  }
}

// Whether `middle` is code without a file in the place of what the file around it had there.
bool has_code_instead(const Line& below, const Line& middle, const Line& above) {
  const bool are_around = below.end() == middle.mapping.begin.value &&
                          middle.end() == above.mapping.begin.value && below.is_of_file() &&
                          below.is_of_same_file(above);
  return are_around && middle.is_executable && !middle.is_of_file() && !is_device_path(middle.path);
}

// The line shows `mapping`'s begin from the same offset of its file.
bool has_begin_of(const Line& line, const MappingFacts& mapping) {
  const uint64_t inside = mapping.begin.value - line.mapping.begin.value;
  return mapping.begin >= line.mapping.begin && inside < line.mapping.size_bytes &&
         line.mapping.file_offset + inside == mapping.file_offset;
}

// Each byte of the file once, from the lowest address that has it: who maps a file over and over
// would have it read as often.
std::vector<MappedPiece> without_overlaps(std::vector<MappedPiece> pieces) {
  std::ranges::stable_sort(pieces, {}, &MappedPiece::file_offset);
  std::vector<MappedPiece> result;
  uint64_t end = 0;
  for (MappedPiece piece : pieces) {
    const uint64_t known_bytes = end - std::min(end, piece.file_offset);
    if (known_bytes >= piece.size_bytes) continue;
    piece.file_offset += known_bytes;
    piece.size_bytes -= known_bytes;
    piece.begin.value += known_bytes;
    end = piece.file_offset + piece.size_bytes;
    result.push_back(piece);
  }
  return result;
}

}  // namespace

std::vector<MappingFacts> parse_maps(std::string_view text, uint32_t pid) {
  std::vector<MappingFacts> mappings;
  for_each_line(text, pid, [&](const Line& line) {
    if (line.is_executable) mappings.push_back(line.with_path());
  });
  return mappings;
}

std::vector<MappingFacts> parse_data_below_code(std::string_view text, uint32_t pid) {
  std::vector<MappingFacts> mappings;
  Line below, middle;
  for_each_line(text, pid, [&](const Line& above) {
    const bool are_data = !below.is_executable && !above.is_executable;
    if (are_data && has_code_instead(below, middle, above)) mappings.push_back(below.with_path());
    below = std::exchange(middle, above);
  });
  return mappings;
}

std::optional<MappingFacts> find_mapping(std::string_view text, const MappingFacts& mapping) {
  std::optional<MappingFacts> found;
  for_each_line(text, mapping.pid, [&](const Line& line) {
    const bool may_be = !mapping.build_id.empty() || is_same_inode(line.mapping, mapping);
    if (may_be && line.mapping.inode != 0 && has_begin_of(line, mapping)) found = line.with_path();
  });
  return found;
}

std::vector<MappedPiece> parse_mapped_pieces(std::string_view text, const MappingFacts& found) {
  std::vector<MappedPiece> pieces;
  bool is_there = false;
  for_each_line(text, found.pid, [&](const Line& line) {
    if (!is_same_inode(line.mapping, found)) return;
    is_there = is_there || has_begin_of(line, found);
    if (!line.is_read_only || line.mapping.file_offset > UINT64_MAX - line.mapping.size_bytes)
      return;
    pieces.push_back({line.mapping.file_offset, line.mapping.size_bytes, line.mapping.begin});
  });
  return is_there ? without_overlaps(std::move(pieces)) : std::vector<MappedPiece>();
}

}  // namespace sentry_prof::target
