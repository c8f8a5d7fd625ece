#include "sentry/field_tables.h"

namespace sentry_prof::sentry {

namespace {

// Order as most writers have it; the scan learns a file's own.
constexpr Field kFrameFields[] = {
    nullable("instruction_addr", Form::Address, "frame-address", Slot::FrameAddress),
    with_alias(nullable("function", Form::Text, "frame-text", Slot::FunctionName), "name"),
    nullable("package", Form::Text, "frame-text"),
    with_alias(nullable("filename", Form::Text, "frame-text", Slot::FileName), "file"),
    with_alias(nullable("lineno", Form::U32, "frame-line", Slot::Line), "line"),
    with_alias(nullable("colno", Form::U32, "frame-line"), "column"),
    nullable("abs_path", Form::Text, "frame-text"),
    nullable("module", Form::Text, "frame-text"),
    nullable("platform", Form::Text, "frame-text"),
    nullable("in_app", Form::Bool, "frame-in-app"),
};
}  // namespace

const Shape kFrameShape{ShapeKind::Frame, kFrameFields, "frame"};

namespace {

constexpr Field kThreadFields[] = {
    nullable("name", Form::Text, "thread-name"),
    nullable("priority", Form::U32, "thread-priority"),
};
}  // namespace

const Shape kThreadShape{ShapeKind::Thread, kThreadFields, "thread-metadata"};

namespace {

constexpr Field kImageFields[] = {
    required("type", Form::Text, "image-type", Slot::ImageType),
    with_alias(nullable("code_file", Form::Text, "image-code-file"), "name"),
    with_alias(nullable("debug_id", Form::DebugId, "image-debug-id", Slot::ImageDebugId), "id"),
    nullable("image_addr", Form::Address, "image-address", Slot::ImageAddress),
    nullable("image_vmaddr", Form::Address, "image-address", Slot::ImageOtherAddress),
    optional_field("image_size", Form::UnsignedOrText, "image-size", Slot::ImageSize),
    with_alias(nullable("uuid", Form::Uuid, "image-uuid"), "build_id"),
    documented("code_id", Form::Text, "image-attribute-type", Slot::ImageCodeId),
    documented("debug_file", Form::Text, "image-attribute-type"),
    documented("debug_checksum", Form::Text, "image-attribute-type"),
    documented("arch", Form::Text, "image-attribute-type"),
};
constexpr Shape kImage{ShapeKind::Image, kImageFields, "image"};

constexpr Field kSdkInfoFields[] = {
    documented("sdk_name", Form::Text, "debug-meta-sdk-info"),
    documented("version_major", Form::Index, "debug-meta-sdk-info"),
    documented("version_minor", Form::Index, "debug-meta-sdk-info"),
    documented("version_patchlevel", Form::Index, "debug-meta-sdk-info"),
};
constexpr Shape kSdkInfo{ShapeKind::Plain, kSdkInfoFields};

constexpr Field kDebugMetaFields[] = {
    required("images", Form::List, "debug-meta-images", Slot::Nowhere, &kImage),
    documented("sdk_info", Form::Object, "debug-meta-sdk-info", Slot::Nowhere, &kSdkInfo),
};
}  // namespace

const Shape kDebugMetaShape{ShapeKind::Plain, kDebugMetaFields};

}  // namespace sentry_prof::sentry
