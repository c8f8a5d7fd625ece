// The rule table's parts; all_rules() (rules.h) is both, one behind the other.
#pragma once

#include "sentry/rules.h"

#include <span>
#include <string_view>

namespace sentry_prof::sentry {

// What is told while a text is read: JSON, fields that are missing, have another type or another
// form.
std::span<const Rule> field_rules();
// What the judges of samples, stacks, threads, images and envelopes tell.
std::span<const Rule> meaning_rules();

// What field_rules() is made of.
std::span<const Rule> json_rules();
std::span<const Rule> document_rules();
std::span<const Rule> measurement_rules();
std::span<const Rule> v1_rules();
std::span<const Rule> v1_transaction_rules();
std::span<const Rule> v2_rules();
std::span<const Rule> image_rules();

// What meaning_rules() is made of.
std::span<const Rule> sample_rules();
std::span<const Rule> stack_rules();
std::span<const Rule> envelope_rules();

// Words that many rules have in common.
inline constexpr std::string_view kInvalidJson = "profiling_invalid_json";
inline constexpr std::string_view kRefused = "Refuses the whole profile.";
inline constexpr std::string_view kSilent = "The documents say nothing of it.";

}  // namespace sentry_prof::sentry
