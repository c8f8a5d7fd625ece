#include "sentry/field_tables.h"

namespace sentry_prof::sentry {

namespace {

constexpr Field kSdkFields[] = {
    required("name", Form::Text, "v2-client-sdk", Slot::SdkText),
    required("version", Form::Text, "v2-client-sdk", Slot::SdkText),
};
constexpr Shape kSdk{ShapeKind::Plain, kSdkFields};

constexpr Field kValueFields[] = {
    required("timestamp", Form::Number, "measurement-value"),
    required("value", Form::NumberOrText, "measurement-value"),
};
constexpr Shape kValue{ShapeKind::Plain, kValueFields, "measurement-value"};

constexpr Field kMeasurementFields[] = {
    required("unit", Form::Unit, "measurement-unit", Slot::Unit),
    required("values", Form::List, "measurement-values", Slot::Nowhere, &kValue),
};
constexpr Shape kMeasurement{ShapeKind::Plain, kMeasurementFields, "measurement"};

constexpr Field kSampleFields[] = {
    required("timestamp", Form::Number, "v2-sample-timestamp", Slot::Timestamp),
    required("stack_id", Form::Index, "sample-stack-id", Slot::StackId),
    required("thread_id", Form::Text, "v2-sample-thread-id", Slot::ThreadId),
};
constexpr Shape kSample{ShapeKind::Sample, kSampleFields, "sample"};

constexpr Field kDataFields[] = {
    required("samples", Form::List, "profile-lists", Slot::Nowhere, &kSample),
    required("stacks", Form::Stacks, "profile-lists"),
    required("frames", Form::List, "profile-lists", Slot::Nowhere, &kFrameShape),
    with_missing(optional_field("thread_metadata", Form::Map, "thread-metadata", Slot::Nowhere,
                                &kThreadShape),
                 "thread-metadata-missing"),
};
constexpr Shape kData{ShapeKind::ProfileData, kDataFields};

constexpr Field kTopFields[] = {
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
    optional_field("measurements", Form::Map, "measurement", Slot::Nowhere, &kMeasurement),
    required("profile", Form::Object, "profile", Slot::Nowhere, &kData),
    documented("sampled_profile", Form::Anything, {}),  // Android's own format has it
};

}  // namespace

const Shape kV2Shape{ShapeKind::V2, kTopFields};

}  // namespace sentry_prof::sentry
