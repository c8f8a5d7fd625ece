#include "sentry/rules_parts.h"

namespace sentry_prof::sentry {

namespace {

constexpr Rule kJsonRules[] = {
    {"profile-size", Severity::Error, RelayEffect::Refuses, "profiling_exceed_size_limit",
     RelayStage::ItemSize, DocumentsEffect::Silent, false,
     "A profile or chunk has at most 50 MiB, expanded.", "Drops it without reading it.",
     "No limit is given.",
     "Make shorter chunks or profiles (sentry-prof record --chunk-seconds), or sample less often "
     "(--frequency). Whoever writes each stack and frame once, and refers to them by number, needs "
     "far less.",
     "Relay, size limits", "a chunk of 52428801 bytes", "a chunk of 52428800 bytes"},
    {"json-syntax", Severity::Error, RelayEffect::Refuses, kInvalidJson, RelayStage::MinimalProfile,
     DocumentsEffect::Must, false, "The text is JSON.",
     "Cannot parse the profile and drops it whole.", "The payload is to be serialized as JSON.",
     "Look at the place that is told: the byte there cannot stand there. If it is the end of the "
     "file, the file was cut off: take the original again. NaN, Infinity, comments, single quotes "
     "and commas behind the last element are not JSON.",
     "RFC 8259; Relay parses strictly", R"({"version": "1",})", R"({"version": "1"})"},
    {"json-utf8", Severity::Error, RelayEffect::Refuses, kInvalidJson, RelayStage::MinimalProfile,
     DocumentsEffect::Must, false, "The text is UTF-8 without a byte order mark.",
     "Cannot parse the profile and drops it whole.",
     "The payload is to be serialized as JSON, which is UTF-8.",
     "Find what wrote the bytes at the place that is told, often a file name or thread name in "
     "another encoding, and convert it to UTF-8; remove a byte order mark at the beginning. "
     "Convert a text in UTF-16, "
     "as Windows' shells write it, by iconv -f UTF-16 -t UTF-8.",
     "RFC 8259, section 8.1; Relay parses strictly", "the bytes 22 FF 22", "the bytes 22 C3 BF 22"},
    {"json-depth", Severity::Error, RelayEffect::Refuses, kInvalidJson, RelayStage::MinimalProfile,
     DocumentsEffect::Silent, false, "Objects and arrays are nested less than 128 deep.",
     "Stops parsing at the 128th level and drops the profile, even if the field is one it does not "
     "know.",
     "No limit is given.",
     "Remove the field that is nested so deep: no field of a profile needs more than 7 levels.",
     "Relay's JSON parser (recursion limit)", R"({"x": [[[ 128 of them ]]]})", R"({"x": [[[]]]})"},
    {"json-duplicate-key", Severity::Error, RelayEffect::Refuses, kInvalidJson, RelayStage::Fields,
     DocumentsEffect::Silent, false, "A key stands once in an object.",
     "Refuses the profile if it knows the key; keys it does not know, thread ids and names of "
     "measurements may repeat.",
     "Nothing is said of it; readers of JSON differ in which value they take.",
     "Remove all but one of them.", "Relay's profile types",
     R"({"release": "a@1", "release": "a@2"})", R"({"release": "a@2"})"},
    {"json-alias-twice", Severity::Error, RelayEffect::Refuses, kInvalidJson, RelayStage::Fields,
     DocumentsEffect::Silent, false, "A field stands in an object under one of its names only.",
     "Takes name for function, file for filename, line for lineno, column for colno, profile_id "
     "for "
     "event_id, and so sees a field twice, and refuses the profile.",
     "The second names are not documented.",
     "Remove the one that the documents do not have: name, file, line, column, id, build_id or "
     "profile_id.",
     "Relay's profile types (aliases)", R"({"function": "f", "name": "f"})",
     R"({"function": "f"})"},
    {"json-top-level", Severity::Error, RelayEffect::Refuses, kInvalidJson,
     RelayStage::MinimalProfile, DocumentsEffect::Must, false, "The whole is one JSON object.",
     "Finds no profile in it and drops it.", "A profile is an object.",
     "Write the profile itself at the top. A list of profiles has to become one file for each.",
     "Sample Format V1; Sample Format V2", "[{}]", "{}"},
    {"json-trailing-bytes", Severity::Error, RelayEffect::Accepts, "", RelayStage::Never,
     DocumentsEffect::Must, false, "Nothing follows the profile.",
     "Reads the first object and never looks at what follows.",
     "The payload is to be serialized as JSON, which is one value.",
     "Split the file if several profiles were written into it one behind the other: all but the "
     "first would be lost. Else remove the rest.",
     "RFC 8259, section 2", "{...}{...}", "{...}"},
    {"alias-key", Severity::Note, RelayEffect::Accepts, "", RelayStage::Never,
     DocumentsEffect::Should, false, "Fields have the names that the documents give them.",
     "Takes the other name too, and stores the documented one.", "The name is not documented.",
     "Rename the field when you can: function, filename, lineno, colno; code_file, debug_id, uuid.",
     "Relay's profile types (aliases)", R"({"file": "a.c"})", R"({"filename": "a.c"})"},
};

}  // namespace

std::span<const Rule> json_rules() { return kJsonRules; }

}  // namespace sentry_prof::sentry
