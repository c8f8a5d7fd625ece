// All rules, as data: what must hold, what the server does where it does not, what the documents
// say, how to mend it. docs/rules.md, the man page sentry-prof-rules(7) and `validate --explain`
// print this table; the judges in this folder refer to it by id.
#pragma once

#include "sentry_prof/validate.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace sentry_prof::sentry {

// What Relay does with a profile that breaks the rule.
enum class RelayEffect : uint8_t {
  Refuses,  // the profile is lost, with `reason`
  Loses,    // accepted, but part of it is dropped or misread
  Accepts,
  Unknown,  // judged by rules of the server's that are not known here
};

// What the published documents say of it.
enum class DocumentsEffect : uint8_t {
  Must,    // REQUIRED or MUST is broken
  Should,  // RECOMMENDED or SHOULD is
  Silent,  // nothing, or it is allowed
};

// Relay's order of checks: of several broken rules the one with the lowest stage gives the reason,
// and within a stage the one that comes first in all_rules(). Two choices are ours, as no source
// settles them: an envelope with two V1 profiles of which one is broken has the reason of the
// broken one (profiles are read before their number is judged), and a chunk with another platform
// than its item's header and without a version has that of the platform.
enum class RelayStage : uint8_t {
  Http,            // the envelope is refused whole
  ItemSize,        // before parsing
  MinimalProfile,  // syntax; event_id, platform and version
  Version,
  Fields,            // everything that has a type
  PlatformMetadata,  // cocoa
  TransactionPresence,
  TransactionMetadata,
  EnoughSamples,
  Samples,
  Stacks,
  Duration,
  Envelope,  // between the items of an envelope
  Never,
};

struct Rule {
  std::string_view id;  // "v2-sample-timestamp", "enough-samples": lower case, dashes
  Severity severity;    // against both
  RelayEffect relay;
  // Relay's outcome reason, or "HTTP 400", "HTTP 413"; empty unless Refuses.
  std::string_view reason;
  RelayStage stage;  // Never unless Refuses
  DocumentsEffect documents;
  // `upload` sends something else in its place: no refusal when judged against both.
  bool is_mended_by_upload;
  std::string_view title;      // what must hold, a sentence
  std::string_view server;     // what the server does where it does not hold
  std::string_view published;  // what the documents say
  std::string_view mend;       // what to do next
  std::string_view source;     // "Relay, profile normalisation", "Sample Format V2, 2.5.0: samples"
  std::string_view breaks;     // an example that breaks it: a piece of JSON
  std::string_view holds;      // the same, mended
};

std::span<const Rule> all_rules();
const Rule* find_rule(std::string_view id);

}  // namespace sentry_prof::sentry
