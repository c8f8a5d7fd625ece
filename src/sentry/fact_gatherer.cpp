#include "sentry/fact_gatherer.h"

#include "sentry/scalar_forms.h"
#include "sentry/text_places.h"

#include <algorithm>
#include <iterator>

namespace sentry_prof::sentry {

namespace {

// Of the shortest elements, with their commas: {"name":""}, of a frame that tells something;
// {"timestamp":0,"stack_id":0,"thread_id":""}, of a sample; [], of a stack.
constexpr size_t kFrame_bytes = 12;
constexpr size_t kSample_bytes = 44;
constexpr size_t kStack_bytes = 3;
// A thread that is worth its metadata has a sample or more besides. Of a text with more metadata
// than that the rest is left out, to bound memory.
constexpr size_t kThread_bytes = 64;
constexpr size_t kFewThreads = 1024;
// An image with an id and an address, which is worth remembering, is longer; so of images.
constexpr size_t kImage_bytes = 96;
constexpr size_t kFewImages = 1024;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool has_all_fields(const Shape& shape, uint32_t present) {
  return present == (1ULL << shape.fields.size()) - 1;
}

}  // namespace

FactGatherer::FactGatherer(ValidatedKind kind, ScanReporter& reporter, ProfileFacts& facts)
    : kind_(kind),
      reporter_(reporter),
      facts_(facts),
      images_(reporter, facts),
      transactions_(reporter, facts) {
  facts_.kind = kind;
}

void FactGatherer::begin_list(ShapeKind kind, size_t rest_bytes) {
  if (kind == ShapeKind::Frame) facts_.frames.reserve(rest_bytes / kFrame_bytes + 1);
  if (kind == ShapeKind::Thread) most_threads_ = kFewThreads + rest_bytes / kThread_bytes;
  if (kind == ShapeKind::Image) facts_.images.reserve(kFewImages + rest_bytes / kImage_bytes);
  if (kind != ShapeKind::Sample) return;
  facts_.samples.reserve(rest_bytes / kSample_bytes + 1);
  // At worst each sample is of another.
  most_sampled_threads_ = facts_.threads.size() + rest_bytes / kSample_bytes + 1;
  facts_.threads.reserve(most_sampled_threads_);
}

void FactGatherer::begin_stacks(size_t rest_bytes) {
  facts_.stacks.reserve(rest_bytes / kStack_bytes + 1);
}

void FactGatherer::begin(ShapeKind kind, size_t offset) {
  switch (kind) {
    case ShapeKind::Sample:
      sample_ = {};
      break;
    case ShapeKind::Frame:
      frame_ = {};
      break;
    case ShapeKind::Image:
      images_.begin(offset);
      break;
    case ShapeKind::Transaction:
      transactions_.begin(offset);
      break;
    default:
      break;
  }
}

void FactGatherer::end(const Shape& shape, uint32_t present, size_t offset, bool is_sound) {
  switch (shape.kind) {
    case ShapeKind::Sample:
      if (is_sound) facts_.samples.push_back(sample_);
      break;
    case ShapeKind::Frame:
      ++facts_.frame_count;
      if (facts_.frames.size() < facts_.frames.capacity()) facts_.frames.push_back(frame_);
      break;
    case ShapeKind::Image:
      images_.end(shape, present, offset);
      break;
    case ShapeKind::Transaction:
      transactions_.end(is_sound);
      break;
    case ShapeKind::Device:
      has_whole_device_ = has_all_fields(shape, present);
      break;
    case ShapeKind::Os:
      has_whole_os_ = has_all_fields(shape, present);
      break;
    case ShapeKind::V1:
    case ShapeKind::V2:
      end_profile(shape, present, offset);
      break;
    default:
      break;
  }
}

bool FactGatherer::take_plain(const Field& field, const Scalar& scalar) {
  switch (field.form) {
    case Form::Index:
      if (field.slot != Slot::StackId) return false;
      sample_.stack = static_cast<uint32_t>(std::min<uint64_t>(scalar.unsigned_value, UINT32_MAX));
      return true;
    case Form::Number:
      if (field.slot == Slot::Timestamp) sample_.timestamp_s = scalar.double_value;
      return true;
    case Form::U32:
      if (scalar.unsigned_value > UINT32_MAX) return false;
      if (field.slot == Slot::Line) frame_.has_line = true;
      return true;
    case Form::Text:
      return take_plain_text(field.slot, scalar.string);
    case Form::Address:
      return take_plain_address(field.slot, scalar.string);
    default:
      return false;
  }
}

bool FactGatherer::take_plain_text(Slot slot, const JsonString& text) {
  switch (slot) {
    case Slot::Nowhere:
      return true;
    case Slot::FunctionName:
      return frame_.has_function = true;
    case Slot::FileName:
      return frame_.has_filename = true;
    case Slot::ThreadId:
      if (text.has_escapes) return false;
      sample_.thread = thread_index(text.raw);
      return true;
    default:
      return false;
  }
}

bool FactGatherer::take_plain_address(Slot slot, const JsonString& text) {
  if (slot != Slot::FrameAddress || text.has_escapes || !is_hex_address(text.raw)) return false;
  const auto address = parse_address(text.raw);
  if (!address) return false;
  frame_.has_address = true;
  frame_.instruction_addr = *address;
  return true;
}

// The most frequent ones first.
void FactGatherer::take(Slot slot, Scalar& scalar) {
  switch (slot) {
    case Slot::Nowhere:
      return;
    case Slot::StackId:
      sample_.stack = static_cast<uint32_t>(std::min<uint64_t>(scalar.unsigned_value, UINT32_MAX));
      return;
    case Slot::Timestamp:
      sample_.timestamp_s = scalar.double_value;
      return;
    case Slot::ThreadId:
      sample_.thread =
          thread_index(kind_ == ValidatedKind::V1 ? number_id(scalar) : kept(scalar.string));
      return;
    case Slot::Elapsed:
      sample_.elapsed_ns = scalar.unsigned_value;
      note_number_form(scalar);
      return;
    case Slot::FunctionName:
      frame_.has_function = true;
      return;
    case Slot::FileName:
      frame_.has_filename = true;
      return;
    case Slot::Line:
      frame_.has_line = true;
      return;
    case Slot::FrameAddress:
      frame_.has_address = true;
      frame_.instruction_addr = scalar.unsigned_value;
      take_address(scalar);
      return;
    default:
      take_of_profile(slot, scalar);
  }
}

void FactGatherer::take_of_profile(Slot slot, Scalar& scalar) {
  switch (slot) {
    case Slot::Version:
      version_ = text_of(scalar);
      version_offset_ = scalar.offset;
      break;
    case Slot::EventId:
      facts_.event_id = kept(scalar.string);
      take_id(scalar, true);
      break;
    case Slot::SessionId:
      take_id(scalar, true);
      break;
    case Slot::Platform:
      facts_.platform = kept(scalar.string);
      if (kind_ == ValidatedKind::V1 &&
          !is_one_of(facts_.platform, {"cocoa", "node", "python", "rust"})) {
        reporter_.report("v1-platform-listed", scalar.offset, [&] {
          return quoted(facts_.platform) + " is not in the document's list";
        });
      }
      break;
    case Slot::Release:
      if (!text_of(scalar).empty()) break;
      reporter_.report("release-missing", scalar.offset,
                       [] { return std::string("the release is empty"); });
      break;
    case Slot::Architecture:
      facts_.architecture = kept(scalar.string);
      break;
    case Slot::SdkText:
      if (!text_of(scalar).empty()) break;
      reporter_.report("v2-client-sdk-empty", scalar.offset,
                       [] { return std::string("this is empty"); });
      break;
    case Slot::Unit:
      if (!is_one_of(text_of(scalar), {"nanojoule", "nj"})) break;
      reporter_.report("measurement-unit-undocumented", scalar.offset,
                       [&] { return quoted(text_of(scalar)) + " is not in the documents' list"; });
      break;
    case Slot::TransactionId:
    case Slot::TraceId:
      take_id(scalar, false);
      [[fallthrough]];
    case Slot::TransactionName:
    case Slot::RelativeStart:
    case Slot::RelativeEnd:
      transactions_.take(slot, scalar, kept(scalar.string));
      break;
    case Slot::ActiveThread:
      transactions_.take(slot, scalar, number_id(scalar));
      break;
    case Slot::ImageAddress:
    case Slot::ImageOtherAddress:
      take_address(scalar);
      [[fallthrough]];
    default:
      images_.take(slot, scalar);
  }
}

void FactGatherer::take_id(const Scalar& scalar, bool must_be_random) {
  const std::string_view text = text_of(scalar);
  const auto uuid = parse_uuid(text);
  if (!is_plain_id(text)) {
    reporter_.report("id-spelling", scalar.offset,
                     [&] { return quoted(text) + " should be " + quoted(uuid->to_hex()); });
  }
  if (must_be_random && !is_random_uuid(*uuid)) {
    reporter_.report("id-random", scalar.offset, [&] {
      return uuid->is_nil() ? "this id is all zeros" : quoted(text) + " is no UUID of version 4";
    });
  }
}

void FactGatherer::take_address(const Scalar& scalar) {
  const std::string_view text = text_of(scalar);
  if (is_hex_address(text)) return;
  reporter_.report("address-decimal", scalar.offset, [&] {
    return quoted(text) + " has no \"0x\": the server reads it as a decimal number";
  });
}

// The documents want it as a string of digits.
void FactGatherer::note_number_form(const Scalar& scalar) {
  if (scalar.kind == JsonKind::String && !scalar.string.raw.starts_with('+')) return;
  reporter_.report("v1-number-form", scalar.offset, [&] {
    return describe(scalar.kind, scalar) + " should be " +
           quoted(std::to_string(scalar.unsigned_value));
  });
}

// An id that the server reads as a number, as it writes it again.
std::string_view FactGatherer::number_id(const Scalar& scalar) {
  note_number_form(scalar);
  std::string_view text = scalar.kind == JsonKind::String ? kept(scalar.string) : scalar.number;
  if (text.empty()) text = keep(std::to_string(scalar.unsigned_value));
  if (text.starts_with('+')) text.remove_prefix(1);
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
  return text;
}

std::string_view FactGatherer::kept(const JsonString& string) {
  if (!string.has_escapes) return string.raw;
  return keep(string.text(buffer_));
}

// Many short texts share a block, which never grows beyond what was reserved: views stay good.
std::string_view FactGatherer::keep(std::string_view text) {
  constexpr size_t kBlock_bytes = 4096;
  auto& blocks = facts_.resolved;
  if (blocks.empty() || blocks.back().capacity() - blocks.back().size() < text.size()) {
    blocks.emplace_back().reserve(std::max(kBlock_bytes, text.size()));
  }
  std::string& block = blocks.back();
  block += text;
  return std::string_view(block).substr(block.size() - text.size());
}

uint32_t FactGatherer::thread_index(std::string_view id) {
  if (last_thread_ < facts_.threads.size() && facts_.threads[last_thread_].id == id) {
    facts_.threads[last_thread_].has_samples = true;
    return last_thread_;
  }
  // More than samples that have all their fields: the list is refused, and nobody asks for threads.
  if (threads_.size() >= most_sampled_threads_ && threads_.count(id) == 0) return last_thread_;
  const auto next = static_cast<uint32_t>(facts_.threads.size());
  const auto [place, is_new] = threads_.try_emplace(id, next);
  if (is_new) facts_.threads.push_back({id, false, false, 0});
  last_thread_ = place->second;
  facts_.threads[last_thread_].has_samples = true;
  return last_thread_;
}

void FactGatherer::take_thread_metadata(const JsonString& id, size_t offset) {
  if (facts_.threads.size() >= most_threads_ && threads_.count(id.raw) == 0) return;
  const std::string_view text = kept(id);
  const auto next = static_cast<uint32_t>(facts_.threads.size());
  const auto [place, is_new] = threads_.try_emplace(text, next);
  if (is_new) facts_.threads.push_back({text, false, false, 0});
  facts_.threads[place->second].has_metadata = true;
  facts_.threads[place->second].metadata_offset = offset;
}

void FactGatherer::end_profile(const Shape& shape, uint32_t present, size_t offset) {
  facts_.is_android_format =
      facts_.platform == "android" &&
      (!is_present(shape, present, "version") || is_present(shape, present, "sampled_profile"));
  facts_.has_debug_meta = is_present(shape, present, "debug_meta");
  if (!facts_.has_debug_meta && is_one_of(facts_.platform, {"cocoa", "native", "rust"})) {
    reporter_.report("debug-meta-missing", offset, [&] {
      return "there is no \"debug_meta\", which the platform " + quoted(facts_.platform) + " needs";
    });
  }
  judge_version();
  if (kind_ != ValidatedKind::V1) return;
  judge_cocoa(offset);
  transactions_.choose(offset);
}

void FactGatherer::judge_cocoa(size_t offset) {
  if (facts_.platform != "cocoa" || (has_whole_device_ && has_whole_os_)) return;
  reporter_.report("v1-cocoa-metadata", offset, [] {
    return std::string(
        "the platform \"cocoa\" needs os.build_number and device.is_emulator, .locale, "
        ".manufacturer and .model as well");
  });
}

void FactGatherer::judge_version() {
  const std::string_view own = kind_ == ValidatedKind::V1 ? "1" : "2";
  if (version_.empty() || version_ == own) return;
  reporter_.path().push_key({"version", false});
  reporter_.report("version", version_offset_, [&] {
    return "the version is " + quoted(version_) + ", but the other fields are those of version " +
           quoted(own);
  });
  reporter_.path().pop();
}

}  // namespace sentry_prof::sentry
