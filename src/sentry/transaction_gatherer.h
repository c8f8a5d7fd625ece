// A V1 profile's transaction: `transaction`, else the first one of `transactions`.
#pragma once

#include "sentry/field_tables.h"
#include "sentry/profile_facts.h"
#include "sentry/scalar.h"
#include "sentry/scan_reporter.h"

#include <optional>
#include <string>
#include <string_view>

namespace sentry_prof::sentry {

class TransactionGatherer {
 public:
  TransactionGatherer(ScanReporter& reporter, ProfileFacts& facts)
      : reporter_(reporter), facts_(facts) {}

  void begin(size_t offset);
  // `text`: the value's, kept as long as the facts.
  void take(Slot slot, const Scalar& scalar, std::string_view text);
  // `is_sound`: all of it has its form.
  void end(bool is_sound);
  // What comes now stands in `transactions`.
  void set_in_list(bool is_in_list) { is_in_list_ = is_in_list; }
  // The profile has ended, at `offset` it began.
  void choose(size_t offset);

 private:
  struct Transaction {
    std::string_view id, trace_id, name;
    std::optional<std::string_view> active_thread_id;
    uint64_t relative_start_ns = 0, relative_end_ns = 0;
    size_t offset = 0;
    bool is_sound = false;
    bool is_in_list = false;
  };

  void judge(const Transaction& transaction);

  ScanReporter& reporter_;
  ProfileFacts& facts_;
  Transaction current_;
  std::optional<Transaction> single_, first_of_list_;
  bool is_in_list_ = false;
};

}  // namespace sentry_prof::sentry
