// The event of type "transaction" that a profile hangs on.
#pragma once

#include <cstdint>
#include <string>

namespace sentry_prof::sentry {

// Ids as 32 hex digits, the span's as 16. What is optional is left out if empty.
struct TransactionEvent {
  std::string event_id, trace_id, span_id;
  std::string name, platform;
  std::string release, environment, dist;  // optional
  std::string sdk_name, sdk_version;
  uint64_t start_unix_us = 0;
  uint64_t end_unix_us = 0;
};

// Source: Sentry's documentation of the event payload and of transactions.
std::string write_transaction(const TransactionEvent& transaction);

}  // namespace sentry_prof::sentry
