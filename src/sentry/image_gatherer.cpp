#include "sentry/image_gatherer.h"

#include "sentry/scalar_forms.h"
#include "sentry/text_places.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace sentry_prof::sentry {

namespace {

// Types of the document and of the server, and what the document requires of each. `symbolic` is an
// ELF image as the server wants it in a profile.
struct ImageType {
  std::string_view name;
  bool needs_address;
  bool needs_size;
  bool needs_debug_id;
  std::string_view other_needs[2];
};
constexpr ImageType kTypes[] = {
    {"elf", true, true, true, {}},
    {"symbolic", true, true, true, {}},
    {"macho", true, false, true, {}},
    {"pe", true, true, true, {"debug_file"}},
    {"wasm", false, false, true, {"code_file"}},
    {"sourcemap", false, false, true, {"code_file"}},
    {"proguard", false, false, false, {"uuid"}},
    {"jvm", false, false, false, {}},
};

const ImageType* find_type(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                         [&](const ImageType& type) { return type.name == name; });
  return found == std::end(kTypes) ? nullptr : found;
}

// `%08x%X` of a PE file's time stamp and size: eight digits and one or more.
bool is_pe_code_id(std::string_view text) {
  return text.size() > 8 && text.size() <= 16 && is_hex_text(text);
}

std::string_view code_id_fault(std::string_view type, std::string_view code_id) {
  const bool is_elf = type == "elf" || type == "symbolic" || type == "wasm";
  if (is_elf && !is_lower_hex_text(code_id)) {
    return "should be the build id: an even number of lower-case hex digits";
  }
  if (is_elf && code_id.size() % 2 != 0)
    return "has an odd number of hex digits; a build id is whole bytes";
  if (type == "pe" && !is_pe_code_id(code_id)) {
    return "should be the time stamp in 8 hex digits and the size of the image in hex behind it";
  }
  if (type == "macho" && !parse_uuid(code_id)) return "should be the value of LC_UUID, a UUID";
  return {};
}

}  // namespace

void ImageGatherer::begin(size_t offset) {
  image_ = {};
  image_.offset = offset;
  type_ = debug_id_ = code_id_ = {};
}

ImageGatherer::Piece ImageGatherer::piece(const Scalar& scalar) {
  std::string buffer;
  return {std::string(clipped(scalar.string.text(buffer), 200)), scalar.offset, true};
}

void ImageGatherer::take(Slot slot, const Scalar& scalar) {
  switch (slot) {
    case Slot::ImageType:
      type_ = piece(scalar);
      break;
    case Slot::ImageDebugId:
      debug_id_ = piece(scalar);
      break;
    case Slot::ImageCodeId:
      code_id_ = piece(scalar);
      break;
    case Slot::ImageAddress:
      image_.image_addr = scalar.unsigned_value;
      break;
    case Slot::ImageSize:
      image_.image_size = scalar.unsigned_value;
      break;
    default:
      break;
  }
}

void ImageGatherer::require(const Shape& shape, uint32_t present, std::string_view key,
                            std::string_view rule, size_t offset) {
  if (key.empty() || is_present(shape, present, key)) return;
  reporter_.report(rule, offset, [&] {
    return "this image of type \"" + type_.text + "\" has no \"" + std::string(key) + "\"";
  });
}

void ImageGatherer::end(const Shape& shape, uint32_t present, size_t offset) {
  const ImageType* const type = find_type(type_.text);
  if (type_.is_there) judge_type();
  if (type != nullptr) {
    image_.type = type->name;
    if (type->needs_address) require(shape, present, "image_addr", "image-address-missing", offset);
    if (type->needs_size) require(shape, present, "image_size", "image-size-missing", offset);
    if (type->needs_debug_id) require(shape, present, "debug_id", "image-debug-id-missing", offset);
    for (const std::string_view key : type->other_needs) {
      require(shape, present, key, "image-attribute-missing", offset);
    }
  }
  if (debug_id_.is_there) judge_debug_id();
  if (code_id_.is_there && !code_id_.text.empty()) judge_code_id();
  ++facts_.image_count;
  if (facts_.images.size() < facts_.images.capacity()) facts_.images.push_back(image_);
}

void ImageGatherer::judge_type() {
  static constexpr std::string_view kRefused[] = {"pe", "wasm"};
  const ImageType* const type = find_type(type_.text);
  std::string_view rule;
  if (type == nullptr) {
    rule = "image-type";
  } else if (type->name == "elf") {
    rule = "image-type-elf";
  } else if (std::find(std::begin(kRefused), std::end(kRefused), type->name) !=
             std::end(kRefused)) {
    rule = "image-type-not-in-profiles";
  } else {
    return;
  }
  reporter_.path().push_key({"type", false});
  reporter_.report(rule, type_.offset, [&] {
    return rule == "image-type"
               ? quoted(type_.text) + " is no type of a debug image; types are in lower case"
               : "the type is " + quoted(type_.text);
  });
  reporter_.path().pop();
}

void ImageGatherer::judge_debug_id() {
  const auto form = parse_debug_id(debug_id_.text);
  if (!form) return;
  image_.debug_id = form->uuid;
  std::string_view fault;
  if (!form->has_dashes) {
    fault = " has no dashes: the documents spell it 8-4-4-4-12";
  } else if (type_.text == "pe" && !form->has_age) {
    fault = " has no age: a PE image's ends with \"-\" and the age of the PDB file in hex";
  } else {
    return;
  }
  reporter_.path().push_key({"debug_id", false});
  reporter_.report("image-debug-id-spelling", debug_id_.offset,
                   [&] { return quoted(debug_id_.text) + std::string(fault); });
  reporter_.path().pop();
}

void ImageGatherer::judge_code_id() {
  const std::string_view fault = code_id_fault(type_.text, code_id_.text);
  if (fault.empty()) return;
  reporter_.path().push_key({"code_id", false});
  reporter_.report("image-code-id", code_id_.offset,
                   [&] { return quoted(code_id_.text) + " " + std::string(fault); });
  reporter_.path().pop();
}

}  // namespace sentry_prof::sentry
