// What a program is called in releases and transactions.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace sentry_prof::recorder {

// The name of the file `executable`; but of the link beside it that is named `comm` (the process's
// name) if that leads to the same file: one file may be several programs (redis-server is a link to
// redis-check-rdb), and the kernel names a process as it was started. `leads_there` tells of a path
// whether it leads to that file, or nothing if nobody answers; then this gives nothing, either.
std::optional<std::string> executable_name(
    const std::string& executable, const std::string& comm,
    const std::function<std::optional<bool>(const std::string&)>& leads_there);

// `name` as far as it may be part of a release that Sentry takes: no slash, backslash or control
// character, and short enough that "@" and a build id fit behind it.
std::string release_part(std::string name);

}  // namespace sentry_prof::recorder
