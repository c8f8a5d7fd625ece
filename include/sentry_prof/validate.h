// Judging profiles: every reason why Sentry would refuse one, lose part of it, or find it against
// the published documents. Sources: the same as of sentry.h. The rules themselves are data:
// src/sentry/rules.h, docs/rules.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof {

enum class RuleBook : uint8_t { Documents, Relay };

enum class Severity : uint8_t { Error, Warning, Note };

enum class ValidatedKind : uint8_t { Unknown, V1, V2, Envelope };

struct ValidateOptions {
  // Documents and Relay together (the default) judge what `upload` would send: an image type `elf`
  // is a note, since upload writes `symbolic`. Relay alone judges the bytes as they are.
  bool against_documents = true;
  bool against_relay = true;
  // False: payloads may be larger than the server takes. Memory then grows with the text, see
  // validate().
  bool has_size_limit = true;
};

struct Problem {
  Severity severity = Severity::Error;
  std::string_view rule;  // id, static storage: find_rule() of src/sentry/rules.h tells all of it
  bool is_against_documents = false;
  bool is_against_relay = false;
  // RFC 6901; "" is the whole. In an envelope it begins with the item: "/items/0/payload/..."
  std::string pointer;
  uint64_t offset_bytes = 0;  // in the (expanded) text
  uint32_t line = 1;          // from 1
  uint32_t column = 1;        // from 1, in bytes
  std::string message;        // what is wrong here and, where it is not plain, how to mend it
};

// Problems of a rule beyond the first 100 are counted only.
struct UnlistedProblems {
  std::string_view rule;
  uint64_t count = 0;
};

struct Verdict {
  bool valid = true;
  // False: a profile of a format whose rules are not known here, and none that is refused.
  bool is_known = true;
  // Relay's outcome reason for the first thing it refuses, in its own order of checks
  // ("profiling_invalid_json"); empty if valid, for the documents, and where the server answers
  // with an HTTP status instead.
  std::string_view reason;
  uint16_t http_status = 0;  // 400 or 413 for an envelope that is refused whole; else 0
};

// What the file holds and what of it would be seen. Of an envelope: the sum over its profiles.
struct ProfileSummary {
  double duration_s = 0;  // newest minus oldest sample; 1e15 stands for all that is more
  uint64_t samples = 0;
  uint64_t idle_samples = 0;  // with an empty stack
  uint64_t threads = 0;
  uint64_t stacks = 0;
  uint64_t frames = 0;
  uint64_t frames_with_function = 0;
  uint64_t frames_with_line = 0;
  uint64_t frames_with_address = 0;
  uint64_t images = 0;
  // What the server takes away from a profile that it accepts.
  uint64_t dropped_samples = 0;
  uint64_t dropped_threads = 0;
  uint64_t dropped_thread_names = 0;  // unreferenced thread_metadata
};

struct ValidationReport {
  ValidatedKind kind = ValidatedKind::Unknown;
  bool valid = true;  // no problem of severity Error
  Verdict relay;
  Verdict documents;
  std::vector<Problem> problems;  // by offset
  std::vector<UnlistedProblems> unlisted;
  ProfileSummary summary;
};

// Judges `text`: a V1 profile, a V2 chunk or an envelope, told apart by content. Any bytes are
// fine. Time is linear in their number; memory beside them at most twice their size, plus 32 MiB.
ValidationReport validate(std::string_view text, const ValidateOptions& options = {});

}  // namespace sentry_prof
