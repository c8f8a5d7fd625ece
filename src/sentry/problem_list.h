// Collects problems: bounded in number, each with its pointer and offset; lines and columns are
// computed once, at the end.
#pragma once

#include "sentry/rules.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::sentry {

class ProblemList {
 public:
  // Of a rule so many are kept with their text; further ones are counted.
  static constexpr size_t kListedPerRule = 100;

  explicit ProblemList(const ValidateOptions& options);

  // Would one more problem of this rule be listed? Callers spare themselves building pointers and
  // messages if not.
  bool lists(std::string_view rule_id) const;
  // `rule_id` must be one of all_rules(). A rule on which the chosen books are silent is not noted
  // at all.
  void add(std::string_view rule_id, std::string pointer, size_t offset_bytes, std::string message);
  // More of a rule, without text.
  void count(std::string_view rule_id, uint64_t how_many = 1);

  // What has been added since a mark can be taken back.
  struct Mark;
  Mark mark() const;
  void go_back_to(const Mark& mark);

  // Offsets and pointers of what is added from here on are relative to these (an item of an
  // envelope).
  void set_base(std::string pointer_prefix, size_t offset_bytes);

  // Verdicts, severities, order, lines and columns.
  void finish(std::string_view text, ValidationReport& report) &&;

 private:
  struct Entry {
    const Rule* rule;
    std::string pointer;
    size_t offset_bytes;
    std::string message;
  };

  struct Counts {
    uint64_t listed = 0, unlisted = 0;
  };

  bool is_against_relay(const Rule& rule) const;
  bool is_against_documents(const Rule& rule) const;
  bool is_noted(const Rule& rule) const;
  Severity severity(const Rule& rule) const;
  Counts& counts_of(const Rule& rule);
  const Counts& counts_of(const Rule& rule) const;
  void judge(ValidationReport& report) const;
  static void locate(std::string_view text, std::vector<Problem>& problems);

  ValidateOptions options_;
  std::vector<Entry> entries_;
  std::vector<Counts> counts_;  // by the rule's place in all_rules()
  std::string pointer_prefix_;
  size_t base_bytes_ = 0;
};

struct ProblemList::Mark {
  size_t entries;
  std::vector<Counts> counts;
};

}  // namespace sentry_prof::sentry
