#include "sentry/field_tables.h"

namespace sentry_prof::sentry {

namespace {

constexpr Field kDeviceFields[] = {
    required("architecture", Form::Text, "v1-device-architecture", Slot::Architecture),
    nullable("is_emulator", Form::Bool, "v1-device-attribute"),
    nullable("locale", Form::Text, "v1-device-attribute"),
    nullable("manufacturer", Form::Text, "v1-device-attribute"),
    nullable("model", Form::Text, "v1-device-attribute"),
};
constexpr Shape kDevice{ShapeKind::Device, kDeviceFields};

constexpr Field kOsFields[] = {
    required("name", Form::Text, "v1-os-name"),
    required("version", Form::Text, "v1-os-name"),
    nullable("build_number", Form::Text, "v1-os-build-number"),
};
constexpr Shape kOs{ShapeKind::Os, kOsFields};

constexpr Field kRuntimeFields[] = {
    required("name", Form::Text, "v1-runtime-name"),
    required("version", Form::Text, "v1-runtime-name"),
};
constexpr Shape kRuntime{ShapeKind::Plain, kRuntimeFields};

constexpr Field kTransactionFields[] = {
    required("id", Form::Uuid, "v1-transaction-attribute", Slot::TransactionId),
    required("name", Form::Text, "v1-transaction-attribute", Slot::TransactionName),
    required("trace_id", Form::Uuid, "v1-transaction-attribute", Slot::TraceId),
    with_missing(optional_field("active_thread_id", Form::UnsignedOrText, "v1-active-thread-form",
                                Slot::ActiveThread),
                 "v1-active-thread-missing"),
    optional_field("relative_start_ns", Form::UnsignedOrText, "v1-transaction-time",
                   Slot::RelativeStart),
    optional_field("relative_end_ns", Form::UnsignedOrText, "v1-transaction-time",
                   Slot::RelativeEnd),
    optional_field("relative_cpu_start_ms", Form::UnsignedOrText, "v1-transaction-time"),
    optional_field("relative_cpu_end_ms", Form::UnsignedOrText, "v1-transaction-time"),
    nullable("segment_id", Form::Text, "v1-transaction-time"),
};
constexpr Shape kTransaction{ShapeKind::Transaction, kTransactionFields, "v1-transaction"};

// Relay's field has a default: a value without a time stands at the start.
constexpr Field kValueFields[] = {
    optional_field("elapsed_since_start_ns", Form::UnsignedOrText, "measurement-value"),
    required("value", Form::NumberOrText, "measurement-value"),
};
constexpr Shape kValue{ShapeKind::Plain, kValueFields, "measurement-value"};

constexpr Field kMeasurementFields[] = {
    required("unit", Form::Unit, "measurement-unit", Slot::Unit),
    required("values", Form::List, "measurement-values", Slot::Nowhere, &kValue),
};
constexpr Shape kMeasurement{ShapeKind::Plain, kMeasurementFields, "measurement"};

constexpr Field kSampleFields[] = {
    required("elapsed_since_start_ns", Form::UnsignedOrText, "v1-sample-elapsed", Slot::Elapsed),
    required("stack_id", Form::Index, "sample-stack-id", Slot::StackId),
    required("thread_id", Form::UnsignedOrText, "v1-sample-thread-id", Slot::ThreadId),
    nullable("queue_address", Form::Text, "v1-queue"),
};
constexpr Shape kSample{ShapeKind::Sample, kSampleFields, "sample"};

constexpr Field kQueueFields[] = {required("label", Form::Text, "v1-queue")};
constexpr Shape kQueue{ShapeKind::Plain, kQueueFields, "v1-queue"};

constexpr Field kDataFields[] = {
    required("samples", Form::List, "profile-lists", Slot::Nowhere, &kSample),
    required("stacks", Form::Stacks, "profile-lists"),
    required("frames", Form::List, "profile-lists", Slot::Nowhere, &kFrameShape),
    with_missing(with_null(nullable("thread_metadata", Form::Map, "thread-metadata", Slot::Nowhere,
                                    &kThreadShape),
                           "thread-metadata-missing"),
                 "thread-metadata-missing"),
    nullable("queue_metadata", Form::Map, "v1-queue", Slot::Nowhere, &kQueue),
};
constexpr Shape kData{ShapeKind::ProfileData, kDataFields};

constexpr Field kTopFields[] = {
    with_missing(optional_field("version", Form::Version, "version-form", Slot::Version),
                 "version"),
    with_alias(required("event_id", Form::Uuid, "v1-event-id", Slot::EventId), "profile_id"),
    required("platform", Form::Text, "platform", Slot::Platform),
    with_missing(
        with_null(nullable("release", Form::Text, "release", Slot::Release), "release-missing"),
        "release-missing"),
    with_missing(optional_field("environment", Form::Text, "environment"), "environment-missing"),
    optional_field("dist", Form::Text, "v1-dist"),
    with_missing(optional_field("timestamp", Form::Time, "v1-timestamp"), "v1-timestamp-missing"),
    required("device", Form::Object, "v1-device", Slot::Nowhere, &kDevice),
    required("os", Form::Object, "v1-os", Slot::Nowhere, &kOs),
    nullable("runtime", Form::Object, "v1-runtime", Slot::Nowhere, &kRuntime),
    nullable("transaction", Form::Object, "v1-transaction", Slot::Nowhere, &kTransaction),
    optional_field("transactions", Form::List, "v1-transaction", Slot::Nowhere, &kTransaction),
    nullable("debug_meta", Form::Object, "debug-meta", Slot::Nowhere, &kDebugMetaShape),
    nullable("measurements", Form::Map, "measurement", Slot::Nowhere, &kMeasurement),
    optional_field("transaction_metadata", Form::TextMap, "v1-transaction-tags"),
    optional_field("transaction_tags", Form::TextMap, "v1-transaction-tags"),
    required("profile", Form::Object, "profile", Slot::Nowhere, &kData),
};

}  // namespace

const Shape kV1Shape{ShapeKind::V1, kTopFields};

}  // namespace sentry_prof::sentry
