// Rules on samples and threads. See judge_samples.h, judge_threads.h.
#include "sentry/rules_parts.h"

namespace sentry_prof::sentry {

namespace {

constexpr std::string_view kV1Source = "Relay, normalisation of V1 profiles";
constexpr std::string_view kV2Source = "Relay, normalisation of V2 chunks";

constexpr Rule kSampleRules[] = {
    {
        .id = "v1-window",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Samples of a V1 profile lie in its transaction's time window.",
        .server =
            "If transaction.relative_end_ns is above 0, samples before relative_start_ns or after "
            "relative_end_ns are dropped before anything else is looked at.",
        .published = "The documents do not know these fields.",
        .mend = "Remove relative_start_ns and relative_end_ns, or set them to nanoseconds on the "
                "clock of "
                "elapsed_since_start_ns that enclose all samples.",
        .source = kV1Source,
        .breaks =
            R"("relative_end_ns": "1000" and a sample {"elapsed_since_start_ns": "2000", ...})",
        .holds = R"("relative_end_ns": "2000" and the same sample)",
    },
    {
        .id = "v1-idle-edges",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Each thread of a V1 profile begins and ends with a sample that has a stack.",
        .server = "Idle samples (of an empty stack) before a thread's first and after its last "
                  "sample with a "
                  "stack are dropped; a thread that has only idle samples disappears.",
        .published = kSilent,
        .mend = "Nothing has to be done if idle time at the edges does not matter. Use the V2 "
                "format if it "
                "does: it keeps idle samples.",
        .source = kV1Source,
        .breaks = R"("stacks": [[], [0]], stack_id of a thread's samples: 0, 1, 1)",
        .holds = R"("stacks": [[], [0]], stack_id of a thread's samples: 1, 0, 1)",
    },
    {
        .id = "v1-thread-one-sample",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Each thread of a V1 profile has at least two samples.",
        .server = "A thread that has exactly one sample left, once its idle edges are trimmed, is "
                  "dropped: "
                  "one sample lasts no time.",
        .published = kSilent,
        .mend = "Sample longer or more often, so that threads that matter are met twice.",
        .source = kV1Source,
        .breaks = R"({"thread_id": "1", ...}, {"thread_id": "2", ...}, {"thread_id": "2", ...})",
        .holds = R"({"thread_id": "1", ...}, {"thread_id": "1", ...})",
    },
    {
        .id = "v2-thread-one-sample",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Each thread of a V2 chunk has at least two samples whose stacks exist and are "
                 "not empty.",
        .server = "A thread with one such sample, or none, is dropped with all its samples, idle "
                  "ones too.",
        .published = kSilent,
        .mend = "Make chunks longer (up to 60 s) or sample more often, so that threads that matter "
                "are met "
                "twice while they run.",
        .source = kV2Source,
        .breaks = R"("stacks": [[], [0]], stack_id of a thread's samples: 1, 0, 0)",
        .holds = R"("stacks": [[], [0]], stack_id of a thread's samples: 1, 0, 1)",
    },
    {
        .id = "enough-samples",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = "profiling_not_enough_samples",
        .stage = RelayStage::EnoughSamples,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "At least one thread has two samples that are not idle.",
        .server = "Once idle edges, threads with a single sample and samples outside the "
                  "transaction's window "
                  "are dropped, nothing is left: the profile is refused.",
        .published =
            "V1: a profile needs two samples, on whichever threads. V2: no least number is stated.",
        .mend = "Record longer, or at a higher rate, or while the program works rather than waits. "
                "Two samples "
                "of one thread that have stacks are enough.",
        .source = "Relay, normalisation of V1 profiles and V2 chunks",
        .breaks =
            R"([{"thread_id": "1", "stack_id": 0, ...}, {"thread_id": "2", "stack_id": 0, ...}])",
        .holds =
            R"([{"thread_id": "1", "stack_id": 0, ...}, {"thread_id": "1", "stack_id": 0, ...}])",
    },
    {
        .id = "v1-two-samples",
        .severity = Severity::Error,
        .relay = RelayEffect::Accepts,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "A V1 profile has at least two samples.",
        .server = "The server counts by thread: see enough-samples.",
        .published = "A profile with fewer than two samples is dropped.",
        .mend = "Record longer or at a higher rate.",
        .source = "Sample Format V1: limits",
        .breaks = R"("samples": [{...}])",
        .holds = R"("samples": [{...}, {...}])",
    },
    {
        .id = "sample-stack",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = "profiling_malformed_samples",
        .stage = RelayStage::Samples,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "The stack_id of each sample is the index of an element of stacks.",
        .server =
            "One sample that is kept and whose stack does not exist: the whole profile is refused.",
        .published = "stack_id is an index into stacks; what happens to one that points at nothing "
                     "is not stated.",
        .mend = "Count stacks from 0: with N stacks, stack_id is at most N - 1. Add the missing "
                "stack, or remove "
                "the sample.",
        .source = "Relay, normalisation of V1 profiles and V2 chunks",
        .breaks = R"("stacks": [[0]], "samples": [..., {"stack_id": 1, ...})",
        .holds = R"("stacks": [[0]], "samples": [..., {"stack_id": 0, ...})",
    },
    {
        .id = "sample-stack-dropped",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Samples that the server drops have stacks that exist, too.",
        .server = "A sample whose stack does not exist counts as idle. This one is dropped with "
                  "its thread or "
                  "with its thread's idle edge, before the server looks at indices.",
        .published = "stack_id is an index into stacks; what happens to one that points at nothing "
                     "is not stated.",
        .mend = "Repair what wrote the index: one sample more or less on this thread makes it a "
                "refusal (sample-stack).",
        .source = "Relay, normalisation of V1 profiles and V2 chunks",
        .breaks = R"("stacks": [[0]], V1 samples of one thread with stack_id 7, 0, 0)",
        .holds = R"("stacks": [[0]], V1 samples of one thread with stack_id 0, 0, 0)",
    },
    {
        .id = "v1-duration",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = "profiling_duration_is_too_long",
        .stage = RelayStage::Duration,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "The last sample of a V1 profile was taken at most 30 s after its start.",
        .server = "Refused if elapsed_since_start_ns of the last element of samples that is kept "
                  "is above "
                  "30000000000, no matter when the first one was taken.",
        .published = "The difference between the last and the first sample is at most 30 s.",
        .mend = "Let elapsed_since_start_ns begin near 0. Split a longer recording into profiles "
                "of 30 s, or "
                "write V2 chunks.",
        .source = kV1Source,
        .breaks = R"({"elapsed_since_start_ns": "30000000001", ...})",
        .holds = R"({"elapsed_since_start_ns": "30000000000", ...})",
    },
    {
        .id = "v1-span",
        .severity = Severity::Error,
        .relay = RelayEffect::Accepts,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "From the oldest to the newest sample of a V1 profile it is at most 30 s.",
        .server = "Looks at the last element of samples only: see v1-duration.",
        .published = "A profile whose first and last sample are more than 30 s apart is dropped.",
        .mend = "Split the recording into profiles of 30 s, or write V2 chunks.",
        .source = "Sample Format V1: limits",
        .breaks =
            R"({"elapsed_since_start_ns": "0", ...}, {"elapsed_since_start_ns": "30000000001", ...})",
        .holds =
            R"({"elapsed_since_start_ns": "0", ...}, {"elapsed_since_start_ns": "30000000000", ...})",
    },
    {
        .id = "v2-duration",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = "profiling_duration_is_too_long",
        .stage = RelayStage::Duration,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "From the oldest to the newest sample of a V2 chunk it is at most 66 s.",
        .server = "Refused if the kept samples span more than 66 s: 60 s and a tenth to spare.",
        .published = "No limit is stated.",
        .mend = "Split the recording into chunks of at most 60 s, each with a chunk_id of its own "
                "and all with the "
                "same profiler_id. If the span is far longer: timestamp is in seconds, not "
                "milliseconds.",
        .source = kV2Source,
        .breaks = R"({"timestamp": 1768478400.0, ...}, {"timestamp": 1768478466.5, ...})",
        .holds = R"({"timestamp": 1768478400.0, ...}, {"timestamp": 1768478466.0, ...})",
    },
    {
        .id = "v1-samples-order",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Samples of a V1 profile are sorted by elapsed_since_start_ns.",
        .server = "Nobody sorts them: a sample lasts until the next one of its thread in the list, "
                  "so time is "
                  "attributed to the wrong stacks, and the duration is judged by whichever sample "
                  "comes last.",
        .published = kSilent,
        .mend = "Sort samples by elapsed_since_start_ns.",
        .source = kV1Source,
        .breaks = R"({"elapsed_since_start_ns": "20", ...}, {"elapsed_since_start_ns": "10", ...})",
        .holds = R"({"elapsed_since_start_ns": "10", ...}, {"elapsed_since_start_ns": "20", ...})",
    },
    {
        .id = "v2-samples-order",
        .severity = Severity::Warning,
        .relay = RelayEffect::Accepts,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Samples of a V2 chunk are sorted by timestamp.",
        .server = "Sorts them itself. If a clock stepped back while they were taken, stacks of two "
                  "times are "
                  "then shown as one.",
        .published = kSilent,
        .mend = "Sort samples by timestamp. Take timestamps from a clock that does not step: one "
                "wall-clock time "
                "for the start, a monotonic clock from there on.",
        .source = kV2Source,
        .breaks = R"({"timestamp": 1768478400.02, ...}, {"timestamp": 1768478400.01, ...})",
        .holds = R"({"timestamp": 1768478400.01, ...}, {"timestamp": 1768478400.02, ...})",
    },
    {
        .id = "v2-timestamp-time",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Timestamps of a V2 chunk are Unix times in seconds, of our days.",
        .server = "Takes any number. The chunk is then filed under a day in 1970 or thousands of "
                  "years from "
                  "now, where nobody finds it.",
        .published = "timestamp is a Unix time in seconds; no range is stated.",
        .mend = "Divide milliseconds by 1000. To times since the start of a recording add the Unix "
                "time of its "
                "start.",
        .source = "Sample Format V2, 2.5.0: samples",
        .breaks = R"({"timestamp": 1768478400000, ...})",
        .holds = R"({"timestamp": 1768478400.0, ...})",
    },
    {
        .id = "thread-metadata-unreferenced",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Each thread of thread_metadata has samples.",
        .server = "Drops the names of threads that no sample refers to.",
        .published = kSilent,
        .mend = "Nothing has to be done for a thread that never ran. Otherwise compare the "
                "spelling: keys of "
                "thread_metadata are the thread_id of samples, as text.",
        .source = "Relay, normalisation of V1 profiles and V2 chunks",
        .breaks = R"({"thread_id": "1", ...} and "thread_metadata": {"main": {"name": "main"}})",
        .holds = R"({"thread_id": "1", ...} and "thread_metadata": {"1": {"name": "main"}})",
    },
    {
        .id = "thread-name-missing",
        .severity = Severity::Note,
        .relay = RelayEffect::Accepts,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Each thread that has samples is in thread_metadata.",
        .server = "Shows the thread by its number.",
        .published = "thread_metadata is required; whether it must name all threads is not stated.",
        .mend = "Add the thread with its name, to find it in Sentry's list of threads.",
        .source = "Sample Format V2, 2.5.0: thread_metadata",
        .breaks = R"({"thread_id": "2", ...} and "thread_metadata": {"1": {"name": "main"}})",
        .holds =
            R"({"thread_id": "2", ...} and "thread_metadata": {"1": {...}, "2": {"name": "worker"}})",
    },
    {
        .id = "v1-active-thread",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "transaction.active_thread_id is the thread_id of samples.",
        .server = "Of a V1 profile Sentry shows this one thread. If it has no samples, the profile "
                  "looks empty.",
        .published = "active_thread_id is required; that it must have samples is not stated.",
        .mend = "Set active_thread_id to the thread_id of the thread to show. The server takes 0 "
                "for one that is "
                "missing.",
        .source = "Sentry, display of V1 profiles",
        .breaks = R"({"thread_id": "42", ...} and "active_thread_id": "1")",
        .holds = R"({"thread_id": "42", ...} and "active_thread_id": "42")",
    },
};

}  // namespace

std::span<const Rule> sample_rules() { return kSampleRules; }

}  // namespace sentry_prof::sentry
