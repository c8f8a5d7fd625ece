// Errors are values. Every fallible function of sentry-prof returns Result<T>; no exception crosses
// a module boundary.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace sentry_prof {

// A closed set: callers branch on the code, people read the message.
enum class ErrorCode {
  InvalidArgument,   // the caller asked for something that makes no sense
  NotFound,          // no such file, process or section
  PermissionDenied,  // the kernel or the file system refused
  Unsupported,       // well-formed, but of a kind that is not handled
  Malformed,         // bytes that break the rules of their format
  LimitExceeded,     // one of our own limits (memory, size, count), or one of the kernel's
  Io,                // reading or writing failed
  Gone,              // the target ended
};

// `message` names the thing, the reason and, where there is one, the next step. It carries no
// trailing newline and no secret.
struct Error {
  ErrorCode code;
  std::string message;
};

template <typename T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace sentry_prof
