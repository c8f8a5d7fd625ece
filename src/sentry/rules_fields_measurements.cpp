// Measurements, which V1 and V2 share.
#include "sentry/rules_parts.h"

namespace sentry_prof::sentry {

namespace {

constexpr Rule kMeasurementRules[] = {
    {
        .id = "measurement",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "Measurements are an object with an object for each.",
        .server = "Refuses the whole profile. In a chunk null is refused as well.",
        .published = "measurements is an object of measurements.",
        .mend = "Write {\"cpu_0\": {\"unit\": \"percent\", \"values\": []}}, or leave "
                "\"measurements\" out.",
        .source = "Sample Format V1 and V2: measurements",
        .breaks = R"("measurements": [])",
        .holds = R"("measurements": {})",
    },
    {
        .id = "measurement-unit",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "A measurement has one of the known units.",
        .server = kRefused,
        .published = "unit is one of nanosecond, ns, hertz, hz, byte, percent.",
        .mend = "Use one of these, and convert the values: milliseconds become nanoseconds, "
                "kilobytes bytes.",
        .source = "Sample Format V1 and V2: measurements",
        .breaks = R"("unit": "millisecond")",
        .holds = R"("unit": "nanosecond")",
    },
    {
        .id = "measurement-unit-undocumented",
        .severity = Severity::Note,
        .relay = RelayEffect::Accepts,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "A measurement's unit is documented.",
        .server = "Knows nanojoule (nj) too.",
        .published = "The list ends with percent.",
        .mend = "Nothing has to be done for Sentry; for another reader of the documents leave the "
                "measurement out.",
        .source = "Relay's measurements",
        .breaks = R"("unit": "nanojoule")",
        .holds = R"("unit": "percent")",
    },
    {
        .id = "measurement-values",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "A measurement's values are an array.",
        .server = kRefused,
        .published = "The documents call values a collection, and their example shows one object "
                     "where an array belongs.",
        .mend = "Put the object into an array: \"values\": [{...}].",
        .source = "Relay's measurements",
        .breaks = R"("values": {"value": 1})",
        .holds = R"("values": [{"value": 1, ...}])",
    },
    {
        .id = "measurement-value",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = kInvalidJson,
        .stage = RelayStage::Fields,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "Each value of a measurement has a value, and a time of the right type.",
        .server = kRefused,
        .published = "value is a float64, also as a string; V1 has elapsed_since_start_ns, V2 a "
                     "timestamp in seconds. The server takes a missing "
                     "elapsed_since_start_ns for 0.",
        .mend = "V1: {\"elapsed_since_start_ns\": \"10000000\", \"value\": 12.5}. V2: "
                "{\"timestamp\": 1768478400.01, \"value\": 12.5}.",
        .source = "Sample Format V1 and V2: measurements",
        .breaks = R"({"value": null})",
        .holds = R"({"timestamp": 1768478400.01, "value": 12.5})",
    },
};

}  // namespace

std::span<const Rule> measurement_rules() { return kMeasurementRules; }

}  // namespace sentry_prof::sentry
