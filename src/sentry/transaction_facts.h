// What an envelope and its rules need to know of a transaction.
#pragma once

#include "base/json_reader.h"
#include "sentry_prof/profile.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sentry_prof::sentry {

// Offsets are those of values in the payload; where a value is missing, of the object that should
// have it. The server takes a value of another type for a missing one.
struct TransactionFacts {
  std::optional<JsonFault> fault;  // no JSON, no object, or bytes behind it
  std::string type;                // empty if it is missing
  std::optional<Uuid> event_id;
  size_t event_id_offset = 0;
  bool has_start = false, has_end = false;
  std::optional<double> start_s, end_s;  // Unix time; nothing if it is there and no time
  size_t start_offset = 0, end_offset = 0;
  bool has_sdk = false;  // name and version, neither empty
  size_t sdk_offset = 0;
  std::optional<Uuid> trace_id;
  bool has_span_id = false;
  size_t trace_offset = 0;
  bool has_profiler_id = false;  // contexts.profile
};

TransactionFacts read_transaction(std::string_view payload);

}  // namespace sentry_prof::sentry
