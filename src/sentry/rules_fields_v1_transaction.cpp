// The transaction in a V1 profile.
#include "sentry/rules_parts.h"

namespace sentry_prof::sentry {

namespace {

constexpr std::string_view kInvalidJson = "profiling_invalid_json";
constexpr std::string_view kRefused = "Refuses the whole profile.";

constexpr Rule kRules[] = {
    {
        .id = "v1-transaction",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "The transaction is an object.",
        .server = kRefused,
        .published = "transaction is required, an object.",
        .mend = "Write \"transaction\": {\"id\": ..., \"name\": ..., \"trace_id\": ..., "
                "\"active_thread_id\": ...}.",
        .source = "Sample Format V1: transaction",
        .breaks = R"("transaction": "svc")",
        .holds = R"("transaction": {"id": "...", "name": "svc", ...})",
    },
    {
        .id = "v1-transaction-missing",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = "profiling_no_transaction_associated",
        .stage = RelayStage::TransactionPresence,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "A profile names its transaction.",
        .server = "Refuses a profile that belongs to no transaction.",
        .published = "transaction is required; a profile without one is rejected.",
        .mend = "Add \"transaction\" with the id, name, trace_id and active_thread_id of the "
                "transaction that is sent in the same envelope. To send a profile without one, use "
                "V2 chunks.",
        .source = "Sample Format V1: transaction, Validation",
        .breaks = "{}",
        .holds = R"("transaction": {"id": "30976f2ddbe04ac9b6bffe6e35d4710c", ...})",
    },
    {
        .id = "v1-transactions",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "The transaction stands in \"transaction\", not in a list.",
        .server = "Takes the first of \"transactions\" and drops the others.",
        .published = "transaction is an object.",
        .mend = "Move the one transaction into \"transaction\" and remove the list.",
        .source = "Sample Format V1: transaction",
        .breaks = R"("transactions": [{...}])",
        .holds = R"("transaction": {...})",
    },
    {
        .id = "v1-transaction-attribute",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "The transaction has an id and a trace_id, UUIDs, and a name, a string.",
        .server = kRefused,
        .published = "id, name and trace_id are required, strings.",
        .mend = "Add what is missing, as it stands in the transaction event: its event_id, its "
                "transaction, its contexts.trace.trace_id.",
        .source = "Sample Format V1: transaction",
        .breaks = R"("transaction": {"id": "1", "name": "svc"})",
        .holds =
            R"("transaction": {"id": "30976f2ddbe04ac9b6bffe6e35d4710c", "name": "svc", "trace_id": "4b25bc58f14243d8b208d1e22a054164"})",
    },
    {
        .id = "v1-transaction-metadata",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = "profiling_invalid_transaction_metadata",
        .stage = RelayStage::TransactionMetadata,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "The transaction's ids are not all zeros and its name is not empty.",
        .server = "Refuses the profile: it cannot be shown with any transaction.",
        .published = "id, name and trace_id are required.",
        .mend = "Put in the ids and the name of the transaction event that the profile belongs to.",
        .source = "Sample Format V1: transaction; Relay, V1 metadata",
        .breaks = R"("trace_id": "00000000000000000000000000000000")",
        .holds = R"("trace_id": "4b25bc58f14243d8b208d1e22a054164")",
    },
    {
        .id = "v1-active-thread-form",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "The transaction's active_thread_id is an integer below 2^64, in a string.",
        .server = kRefused,
        .published = "active_thread_id is a uint64, converted to a string.",
        .mend = "Write the thread id of one sampled thread in double quotes: \"4242\".",
        .source = "Sample Format V1: transaction",
        .breaks = R"("active_thread_id": "main")",
        .holds = R"("active_thread_id": "4242")",
    },
    {
        .id = "v1-active-thread-missing",
        .severity = Severity::Error,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "The transaction has an active_thread_id.",
        .server = "Takes 0. Sentry shows only the active thread of a V1 profile, and so nothing.",
        .published = "active_thread_id is required.",
        .mend =
            "Add the id of the thread that the transaction was started on, spelled as in samples.",
        .source = "Sample Format V1: transaction",
        .breaks = R"("transaction": {"id": ..., "name": ..., "trace_id": ...})",
        .holds = R"("transaction": {..., "active_thread_id": "4242"})",
    },
    {
        .id = "v1-transaction-time",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title =
            "The transaction's relative times are integers from 0 on, its segment_id is a string.",
        .server = kRefused,
        .published = "The documents do not know these fields.",
        .mend = "Remove the field; nothing needs it.",
        .source = "Relay, V1 metadata",
        .breaks = R"("relative_end_ns": -1)",
        .holds = R"("relative_end_ns": "1000000000")",
    },
    {
        .id = "v1-transaction-tags",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "transaction_tags and transaction_metadata are objects of strings.",
        .server = kRefused,
        .published = "The documents do not know these fields; the server fills them in itself.",
        .mend = "Remove the field.",
        .source = "Relay, V1 metadata",
        .breaks = R"("transaction_tags": {"a": 1})",
        .holds = R"("transaction_tags": {"a": "1"})",
    },
};

}  // namespace

std::span<const Rule> v1_transaction_rules() { return kRules; }

}  // namespace sentry_prof::sentry
