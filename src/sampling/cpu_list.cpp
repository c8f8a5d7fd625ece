#include "sampling/cpu_list.h"

#include <algorithm>
#include <charconv>

namespace sentry_prof::sampling {
namespace {

constexpr int kMaxCpus = 8192;

bool take_cpu(std::string_view& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= kMaxCpus) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

// "3" or "0-3", above everything that is in `cpus`.
bool take_range(std::string_view& text, std::vector<int>& cpus) {
  int first = 0;
  if (!take_cpu(text, first)) return false;
  int last = first;
  if (take(text, '-') && !take_cpu(text, last)) return false;
  if (last < first || (!cpus.empty() && first <= cpus.back())) return false;
  for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  return true;
}

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  std::vector<int> cpus;
  do {
    if (!take_range(text, cpus)) return fail(ErrorCode::Malformed, "no list of CPUs");
  } while (take(text, ','));
  if (!text.empty()) return fail(ErrorCode::Malformed, "no list of CPUs");
  return cpus;
}

size_t count_unknown_cpus(std::span<const int> cpus, std::span<const int> known) {
  return static_cast<size_t>(std::ranges::count_if(
      cpus, [&](int cpu) { return std::ranges::find(known, cpu) == known.end(); }));
}

}  // namespace sentry_prof::sampling
