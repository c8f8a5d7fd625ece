// Rules on stacks, frames and debug images. See judge_stacks.h, judge_images.h.
#include "sentry/rules_parts.h"

namespace sentry_prof::sentry {

namespace {

constexpr std::string_view kSymbolication = "Sentry, symbolication of profiles";

constexpr Rule kStackRules[] = {
    {
        .id = "stack-frame",
        .severity = Severity::Error,
        .relay = RelayEffect::Refuses,
        .reason = "profiling_malformed_stacks",
        .stage = RelayStage::Stacks,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "The elements of each stack are indices of elements of frames.",
        .server = "One stack with a frame that does not exist, used by a sample or not: the whole "
                  "profile is "
                  "refused.",
        .published = "A stack is a list of indices into frames; what happens to one that points at "
                     "nothing is not "
                     "stated.",
        .mend = "Count frames from 0: with N frames, an index is at most N - 1. Remove stacks that "
                "no sample uses "
                "if frames have been removed.",
        .source = "Relay, normalisation of V1 profiles and V2 chunks",
        .breaks = R"("frames": [{...}], "stacks": [[0, 1]])",
        .holds = R"("frames": [{...}], "stacks": [[0]])",
    },
    {
        .id = "stacks-empty",
        .severity = Severity::Error,
        .relay = RelayEffect::Accepts,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "There is at least one stack.",
        .server = "Without stacks all samples count as idle: see enough-samples.",
        .published = "A profile without stacks is dropped.",
        .mend = "Write the stacks that samples refer to. If there are none, nothing was recorded.",
        .source = "Sample Format V1 and V2, 2.5.0: stacks",
        .breaks = R"("stacks": [])",
        .holds = R"("stacks": [[0]])",
    },
    {
        .id = "frames-empty",
        .severity = Severity::Error,
        .relay = RelayEffect::Accepts,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "There is at least one frame.",
        .server = "Refuses stacks whose frames do not exist: see stack-frame.",
        .published = "A profile without frames is dropped.",
        .mend = "Write the frames that stacks refer to.",
        .source = "Sample Format V1 and V2, 2.5.0: frames",
        .breaks = R"("frames": [])",
        .holds = R"("frames": [{"function": "main"}])",
    },
    {
        .id = "frame-empty",
        .severity = Severity::Warning,
        .relay = RelayEffect::Accepts,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Must,
        .is_mended_by_upload = false,
        .title = "Each frame has filename, function or instruction_addr.",
        .server = "Takes the frame and shows it as unknown.",
        .published = "At least one of filename, function and instruction_addr must be there.",
        .mend = "Write what is known of the frame; an address alone is enough if debug_meta holds "
                "its image.",
        .source = "Sample Format V2, 2.5.0: frames",
        .breaks = R"({"in_app": true})",
        .holds = R"({"in_app": true, "instruction_addr": "0x55d0c0a01234"})",
    },
    {
        .id = "frame-address-rust",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "With platform rust and debug images, each frame has instruction_addr.",
        .server = "All frames are sent to symbolication together. One frame without an address "
                  "makes that "
                  "request fail: none of the profile's frames is symbolicated.",
        .published = "instruction_addr is optional.",
        .mend = "Write instruction_addr to every frame, or leave debug_meta.images out, or use "
                "platform native if "
                "names are final.",
        .source = kSymbolication,
        .breaks = R"("platform": "rust", a frame {"function": "main"})",
        .holds =
            R"("platform": "rust", a frame {"function": "main", "instruction_addr": "0x55d0c0a01234"})",
    },
    {
        .id = "frame-function-rust",
        .severity = Severity::Note,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "With platform rust and debug images, each frame has a function.",
        .server = "Where symbolication finds no name either, a stack whose second-to-last frame "
                  "has no function "
                  "loses its last two frames, its root.",
        .published = "function is optional.",
        .mend = "Write a name of last resort, such as libfoo.so+0x1234; symbolication replaces it.",
        .source = kSymbolication,
        .breaks = R"("platform": "rust", a frame {"instruction_addr": "0x55d0c0a01234"})",
        .holds =
            R"("platform": "rust", a frame {"instruction_addr": "0x55d0c0a01234", "function": "svc+0x1234"})",
    },
    {
        .id = "cocoa-addresses",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "With platform cocoa, addresses have at most 36 bits.",
        .server =
            "Cuts instruction_addr of all frames to its lowest 36 bits (V1: if device.architecture "
            "is arm64 or "
            "arm64e). Addresses of Linux programs have up to 47 bits and then lie in no image.",
        .published = kSilent,
        .mend = "Use platform rust for a Linux program, or native if it was symbolicated locally.",
        .source = "Relay, normalisation of V1 profiles and V2 chunks",
        .breaks = R"("platform": "cocoa", a frame {"instruction_addr": "0x55d0c0a01234"})",
        .holds = R"("platform": "rust", a frame {"instruction_addr": "0x55d0c0a01234"})",
    },
    {
        .id = "images-overlap",
        .severity = Severity::Warning,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Debug images do not overlap.",
        .server =
            "An address in two images is looked up in the one that begins last: frames get another "
            "file's names, or none.",
        .published = kSilent,
        .mend = "Write each mapped file once, image_size from its first to the end of its last "
                "segment. Two programs "
                "in one profile need addresses moved apart.",
        .source = kSymbolication,
        .breaks =
            R"({"image_addr": "0x1000", "image_size": 8192}, {"image_addr": "0x2000", "image_size": 4096})",
        .holds =
            R"({"image_addr": "0x1000", "image_size": 4096}, {"image_addr": "0x2000", "image_size": 4096})",
    },
    {
        .id = "images-order",
        .severity = Severity::Note,
        .relay = RelayEffect::Accepts,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Debug images are sorted by image_addr.",
        .server = "Sorts them itself.",
        .published = kSilent,
        .mend = "Nothing has to be done for Sentry; sort images for other readers of the file.",
        .source = kSymbolication,
        .breaks = R"({"image_addr": "0x2000", ...}, {"image_addr": "0x1000", ...})",
        .holds = R"({"image_addr": "0x1000", ...}, {"image_addr": "0x2000", ...})",
    },
    {
        .id = "image-unused",
        .severity = Severity::Note,
        .relay = RelayEffect::Accepts,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Each debug image holds the address of a frame.",
        .server = "Looks the image's debug file up although nothing needs it.",
        .published = kSilent,
        .mend = "Leave the image out to save room. If frames should lie in it, compare its "
                "image_addr with "
                "theirs: both must be addresses of the running process.",
        .source = kSymbolication,
        .breaks = R"({"image_addr": "0x1000", "image_size": 4096}, no frame from 0x1000 to 0x2000)",
        .holds = R"({"image_addr": "0x1000", "image_size": 4096}, a frame at "0x1234")",
    },
    {
        .id = "frame-image",
        .severity = Severity::Note,
        .relay = RelayEffect::Accepts,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "Each frame's address lies in a debug image.",
        .server = "Cannot symbolicate such a frame: it is shown as it was sent.",
        .published = kSilent,
        .mend =
            "Nothing has to be done for generated code and the kernel's own pages. Otherwise add "
            "the "
            "image; instruction_addr and image_addr must both be addresses of the running process.",
        .source = kSymbolication,
        .breaks = R"({"instruction_addr": "0x9000"}, images from 0x1000 to 0x2000)",
        .holds = R"({"instruction_addr": "0x1234"}, images from 0x1000 to 0x2000)",
    },
    {
        .id = "image-debug-id-nil",
        .severity = Severity::Note,
        .relay = RelayEffect::Loses,
        .reason = {},
        .stage = RelayStage::Never,
        .documents = DocumentsEffect::Silent,
        .is_mended_by_upload = false,
        .title = "The debug_id of an image is not all zeros.",
        .server =
            "Takes it, but finds no debug file by it: frames in this image stay without names.",
        .published = kSilent,
        .mend = "Link the file with a build id (-Wl,--build-id) and take debug_id from there: the "
                "first 16 bytes, "
                "in Sentry's byte order. sentry-cli debug-files check FILE prints it.",
        .source = kSymbolication,
        .breaks = R"("debug_id": "00000000-0000-0000-0000-000000000000")",
        .holds = R"("debug_id": "e20a2268-5dc6-c165-b6aa-a12fa6765a6e")",
    },
};

}  // namespace

std::span<const Rule> stack_rules() { return kStackRules; }

}  // namespace sentry_prof::sentry
