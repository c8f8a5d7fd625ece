// Fields of Sample Format V2.
#include "sentry/rules_parts.h"

namespace sentry_prof::sentry {

namespace {

constexpr Rule kV2Rules[] = {
    {
        .id = "v2-profiler-id",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "A chunk has a profiler_id, a UUID.",
        .server = kRefused,
        .published = "profiler_id is required: 32 hex digits of a uuid4.",
        .mend = "Add a random UUID, the same one in all chunks of a session of the profiler.",
        .source = "Sample Format V2: profiler_id",
        .breaks = R"("profiler_id": "session-1")",
        .holds = R"("profiler_id": "71bba98d90b545c39f2ae73f702d7ef4")",
    },
    {
        .id = "v2-chunk-id",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "A chunk has a chunk_id, a UUID.",
        .server = kRefused,
        .published = "chunk_id is required: 32 hex digits of a uuid4.",
        .mend = "Add a random UUID, a new one in each chunk.",
        .source = "Sample Format V2: chunk_id",
        .breaks = R"({"profiler_id": "..."})",
        .holds = R"("chunk_id": "3e11a5c9831f4e49939c0a81944ea2cb")",
    },
    {
        .id = "v2-client-sdk",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "A chunk tells its client_sdk: an object with the strings name and version.",
        .server = "Refuses the whole profile. Old servers filled it in by platform.",
        .published = "client_sdk is required and has a name and a version.",
        .mend = "Add \"client_sdk\": {\"name\": \"sentry-prof\", \"version\": \"1.0\"} with the "
                "name and version of what made the chunk.",
        .source = "Sample Format V2: client_sdk",
        .breaks = R"("client_sdk": {"name": "sentry-prof"})",
        .holds = R"("client_sdk": {"name": "sentry-prof", "version": "1.0"})",
    },
    {
        .id = "v2-client-sdk-empty",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "The client_sdk's name and version are not empty.",
        .server =
            "Accepts it, but Sentry, behind it, may drop profiles of an unknown SDK as deprecated.",
        .published = "The documents do not say that they may be empty.",
        .mend = "Write the name and version of what made the chunk.",
        .source = "Sentry, processing of profiles",
        .breaks = R"("client_sdk": {"name": "", "version": ""})",
        .holds = R"("client_sdk": {"name": "sentry-prof", "version": "1.0"})",
    },
    {
        .id = "v2-sample-timestamp",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "Each sample of a chunk has a timestamp: a number.",
        .server = "Refuses the whole profile. A string is refused, and so is a number that no "
                  "double can hold.",
        .published =
            "timestamp is required: a 64-bit float, Unix time in seconds with microseconds.",
        .mend = "Write Unix seconds with a fraction, without quotes: 1768478400.015231. Samples of "
                "V1 have elapsed_since_start_ns instead; a chunk needs the wall clock.",
        .source = "Sample Format V2: samples",
        .breaks = R"("timestamp": "1768478400.01")",
        .holds = R"("timestamp": 1768478400.01)",
    },
    {
        .id = "v2-sample-thread-id",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "Each sample of a chunk has a thread_id: a string.",
        .server = "Refuses the whole profile. A number is refused.",
        .published = "thread_id is required, a string.",
        .mend = "Write the id in double quotes, spelled as the key in thread_metadata.",
        .source = "Sample Format V2: samples",
        .breaks = R"("thread_id": 4242)",
        .holds = R"("thread_id": "4242")",
    },
};

}  // namespace

std::span<const Rule> v2_rules() { return kV2Rules; }

}  // namespace sentry_prof::sentry
