#include "os/proc_text.h"

#include <charconv>
#include <string>

namespace sentry_prof::os {

namespace {

constexpr uint64_t kPfKthread = 0x00200000;  // include/linux/sched.h

std::string_view next_word(std::string_view& text) {
  constexpr std::string_view kBlanks = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

template <typename T>
bool next_number(std::string_view& text, int base, T& value) {
  const std::string_view word = next_word(text);
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value, base);
  return error == std::errc() && stop == end;
}

// What follows `key` at the begin of a line. A process's name cannot forge one: the kernel escapes
// newlines in "Name:".
std::string_view value_of(std::string_view text, std::string_view key) {
  const size_t line = text.find(std::string("\n").append(key));
  if (line == text.npos) return {};
  const std::string_view value = text.substr(line + 1 + key.size());
  return value.substr(0, value.find('\n'));
}

bool read_ids(std::string_view text, std::array<uint32_t, 4>& ids) {
  for (uint32_t& id : ids) {
    if (!next_number(text, 10, id)) return false;
  }
  return true;
}

}  // namespace

std::optional<ProcStat> parse_stat(std::string_view text) {
  const size_t name_end = text.rfind(')');
  if (name_end == text.npos) return std::nullopt;
  text.remove_prefix(name_end + 1);
  ProcStat stat;
  const std::string_view state = next_word(text);
  if (state.size() != 1 || !next_number(text, 10, stat.parent_pid)) return std::nullopt;
  stat.state = state.front();
  for (int skipped = 0; skipped < 4; ++skipped) next_word(text);  // pgrp, session, tty, tpgid
  uint64_t flags = 0;
  if (!next_number(text, 10, flags)) return std::nullopt;
  stat.is_kernel_thread = (flags & kPfKthread) != 0;
  for (int field = 10; field < 22; ++field) next_word(text);
  next_number(text, 10, stat.start_ticks);
  return stat;
}

std::optional<ProcStatus> parse_status(std::string_view text) {
  ProcStatus status;
  std::string_view thread_group = value_of(text, "Tgid:");
  if (!next_number(thread_group, 10, status.thread_group) ||
      !read_ids(value_of(text, "Uid:"), status.user_ids)) {
    return std::nullopt;
  }
  read_ids(value_of(text, "Gid:"), status.group_ids);
  // From the reader's namespace inward.
  for (std::string_view pids = value_of(text, "NSpid:");
       next_number(pids, 10, status.innermost_pid);) {
  }
  std::string_view capabilities = value_of(text, "CapEff:");
  if (!next_number(capabilities, 16, status.effective_capabilities)) {
    status.effective_capabilities = 0;
  }
  return status;
}

}  // namespace sentry_prof::os
