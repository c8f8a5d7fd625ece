// The kernel's notation for sets of CPUs. Pure.
#pragma once

#include "sentry_prof/result.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace sentry_prof::sampling {

// "0-3,5\n", as in /sys/devices/system/cpu/online, in ascending order. Malformed for anything else,
// and for more CPUs than any kernel is built for (8192, CONFIG_NR_CPUS of x86-64 at its largest).
Result<std::vector<int>> parse_cpu_list(std::string_view text);

// How many of `cpus` are not among `known`.
size_t count_unknown_cpus(std::span<const int> cpus, std::span<const int> known);

}  // namespace sentry_prof::sampling
