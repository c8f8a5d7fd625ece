#include "sentry/field_tables.h"

namespace sentry_prof::sentry {

namespace {

constexpr Field kSdkFields[] = {
    required("name", Form::Text, "v2-client-sdk", Slot::SdkText),
    required("version", Form::Text, "v2-client-sdk", Slot::SdkText),
};
constexpr Shape kSdk{ShapeKind::Plain, kSdkFields};

constexpr Field kV2ValueFields[] = {
    required("timestamp", Form::Number, "measurement-value"),
    required("value", Form::NumberOrText, "measurement-value"),
};
constexpr Shape kV2Value{ShapeKind::Plain, kV2ValueFields, "measurement-value"};

constexpr Field kV2MeasurementFields[] = {
    required("unit", Form::Unit, "measurement-unit", Slot::Unit),
    required("values", Form::List, "measurement-values", Slot::Nowhere, &kV2Value),
};
constexpr Shape kV2Measurement{ShapeKind::Plain, kV2MeasurementFields, "measurement"};

constexpr Field kV2SampleFields[] = {
    required("timestamp", Form::Number, "v2-sample-timestamp", Slot::Timestamp),
    required("stack_id", Form::Index, "sample-stack-id", Slot::StackId),
    required("thread_id", Form::Text, "v2-sample-thread-id", Slot::ThreadId),
};
constexpr Shape kV2Sample{ShapeKind::Sample, kV2SampleFields, "sample"};

constexpr Field kV2DataFields[] = {
    required("samples", Form::List, "profile-lists", Slot::Nowhere, &kV2Sample),
    required("stacks", Form::Stacks, "profile-lists"),
    required("frames", Form::List, "profile-lists", Slot::Nowhere, &kFrameShape),
    with_missing(optional_field("thread_metadata", Form::Map, "thread-metadata", Slot::Nowhere,
                                &kThreadShape),
                 "thread-metadata-missing"),
};
constexpr Shape kV2Data{ShapeKind::ProfileData, kV2DataFields};

constexpr Field kV2TopFields[] = {
    with_missing(optional_field("version", Form::Version, "version-form", Slot::Version),
                 "version"),
    required("profiler_id", Form::Uuid, "v2-profiler-id", Slot::SessionId),
    required("chunk_id", Form::Uuid, "v2-chunk-id", Slot::SessionId),
    required("platform", Form::Text, "platform", Slot::Platform),
    with_missing(
        with_null(nullable("release", Form::Text, "release", Slot::Release), "release-missing"),
        "release-missing"),
    with_missing(nullable("environment", Form::Text, "environment"), "environment-missing"),
    required("client_sdk", Form::Object, "v2-client-sdk", Slot::Nowhere, &kSdk),
    optional_field("debug_meta", Form::Object, "debug-meta", Slot::Nowhere, &kDebugMetaShape),
    optional_field("measurements", Form::Map, "measurement", Slot::Nowhere, &kV2Measurement),
    required("profile", Form::Object, "profile", Slot::Nowhere, &kV2Data),
    documented("sampled_profile", Form::Anything, {}),  // Android's own format has it
};

}  // namespace

const Shape kV2Shape{ShapeKind::V2, kV2TopFields};

}  // namespace sentry_prof::sentry
