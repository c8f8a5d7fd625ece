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
constexpr Field kV1ValueFields[] = {
    optional_field("elapsed_since_start_ns", Form::UnsignedOrText, "measurement-value"),
    required("value", Form::NumberOrText, "measurement-value"),
};
constexpr Shape kV1Value{ShapeKind::Plain, kV1ValueFields, "measurement-value"};

constexpr Field kV1MeasurementFields[] = {
    required("unit", Form::Unit, "measurement-unit", Slot::Unit),
    required("values", Form::List, "measurement-values", Slot::Nowhere, &kV1Value),
};
constexpr Shape kV1Measurement{ShapeKind::Plain, kV1MeasurementFields, "measurement"};

constexpr Field kV1SampleFields[] = {
    required("elapsed_since_start_ns", Form::UnsignedOrText, "v1-sample-elapsed", Slot::Elapsed),
    required("stack_id", Form::Index, "sample-stack-id", Slot::StackId),
    required("thread_id", Form::UnsignedOrText, "v1-sample-thread-id", Slot::ThreadId),
    nullable("queue_address", Form::Text, "v1-queue"),
};
constexpr Shape kV1Sample{ShapeKind::Sample, kV1SampleFields, "sample"};

constexpr Field kQueueFields[] = {required("label", Form::Text, "v1-queue")};
constexpr Shape kQueue{ShapeKind::Plain, kQueueFields, "v1-queue"};

constexpr Field kV1DataFields[] = {
    required("samples", Form::List, "profile-lists", Slot::Nowhere, &kV1Sample),
    required("stacks", Form::Stacks, "profile-lists"),
    required("frames", Form::List, "profile-lists", Slot::Nowhere, &kFrameShape),
    with_missing(with_null(nullable("thread_metadata", Form::Map, "thread-metadata", Slot::Nowhere,
                                    &kThreadShape),
                           "thread-metadata-missing"),
                 "thread-metadata-missing"),
    nullable("queue_metadata", Form::Map, "v1-queue", Slot::Nowhere, &kQueue),
};
constexpr Shape kV1Data{ShapeKind::ProfileData, kV1DataFields};

constexpr Field kV1TopFields[] = {
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
    nullable("measurements", Form::Map, "measurement", Slot::Nowhere, &kV1Measurement),
    optional_field("transaction_metadata", Form::TextMap, "v1-transaction-tags"),
    optional_field("transaction_tags", Form::TextMap, "v1-transaction-tags"),
    required("profile", Form::Object, "profile", Slot::Nowhere, &kV1Data),
};

}  // namespace

const Shape kV1Shape{ShapeKind::V1, kV1TopFields};

}  // namespace sentry_prof::sentry
