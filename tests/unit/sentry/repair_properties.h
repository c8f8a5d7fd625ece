// What holds of every text that is mended, held against the judge.
#pragma once

#include "sentry/rules.h"
#include "sentry_prof/repair.h"
#include "sentry_prof/validate.h"

#include <set>
#include <string>
#include <string_view>

namespace sentry_prof::testing {

using RuleSet = std::set<std::string_view>;

inline RuleSet broken_rules(const ValidationReport& report) {
  RuleSet rules;
  for (const Problem& problem : report.problems) rules.insert(problem.rule);
  return rules;
}

inline bool has_any(const RuleSet& rules, const RuleSet& of) {
  for (const std::string_view rule : of) {
    if (rules.count(rule) != 0) return true;
  }
  return false;
}

// Mending the one may bring the other to light: it was as true before.
inline bool follows_from(std::string_view rule, const RuleSet& before) {
  const RuleSet dropping{"v1-idle-edges", "v1-thread-one-sample", "v1-window"};
  if (rule == "environment-missing") return before.count("environment") != 0;
  if (rule == "v1-active-thread-missing") return before.count("v1-active-thread-form") != 0;
  if (rule == "thread-metadata-missing") return before.count("thread-metadata") != 0;
  // The server shows a thread that it has dropped.
  if (rule == "v1-active-thread") return has_any(before, dropping);
  // Only a frame that nobody had was in it.
  return rule == "image-unused" || rule == "frame-image" || rule == "thread-name-missing";
}

// Without a server's refusal that is gone: behind one stands what was not looked at.
inline bool has_mended_a_refusal(const RuleSet& before, const RuleSet& after) {
  for (const std::string_view rule : before) {
    const sentry::Rule* const found = sentry::find_rule(rule);
    const bool is_refusal = found != nullptr && found->relay == sentry::RelayEffect::Refuses;
    if (is_refusal && after.count(rule) == 0) return true;
  }
  return false;
}

// What is left of what can always be mended; empty if nothing.
inline std::string_view left_over(const RuleSet& after, bool is_valid) {
  const RuleSet unclear{"json-duplicate-key", "json-alias-twice", "json-syntax",   "json-utf8",
                        "json-depth",         "json-top-level",   "frame-address", "image-address"};
  if (has_any(after, unclear)) return {};
  RuleSet mended{"id-spelling", "address-decimal", "alias-key", "v1-profile-id", "v1-number-form"};
  if (is_valid) {
    mended.insert({"v1-idle-edges", "v1-thread-one-sample", "v2-thread-one-sample", "v1-window",
                   "v2-samples-order", "sample-stack-dropped", "thread-metadata-unreferenced"});
  }
  for (const std::string_view rule : mended) {
    if (after.count(rule) != 0) return rule;
  }
  return {};
}

// What is wrong with how `text` is mended; empty if nothing.
inline std::string repair_fault(const std::string& text) {
  const RepairResult once = repair(text);
  if (once.changes.empty() != (once.text == text)) return "changes and their list differ";
  const RepairResult twice = repair(once.text);
  if (twice.text != once.text || !twice.changes.empty()) return "mending twice is not as once";
  const ValidationReport before = validate(text);
  if (before.kind == ValidatedKind::Envelope) return {};
  const ValidationReport after = validate(once.text);
  const RuleSet before_rules = broken_rules(before);
  const RuleSet after_rules = broken_rules(after);
  if (before.relay.valid && !after.relay.valid) return "the server would refuse it now";
  if (before.documents.valid && !after.documents.valid) return "the documents forbid it now";
  if (!has_mended_a_refusal(before_rules, after_rules)) {
    for (const std::string_view rule : after_rules) {
      const bool is_new = before_rules.count(rule) == 0 && !follows_from(rule, before_rules);
      if (is_new) return "breaks a rule that it kept before: " + std::string(rule);
    }
  }
  const std::string_view left = left_over(after_rules, after.valid);
  return left.empty() ? std::string() : "is not mended: " + std::string(left);
}

}  // namespace sentry_prof::testing
