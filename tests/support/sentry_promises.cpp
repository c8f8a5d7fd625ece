// What sentry-prof promises beyond what the server enforces.
#include "support/sentry_document.h"

#include <algorithm>
#include <map>
#include <set>

namespace sentry_prof::testing {
namespace {

bool is_lower_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_uuid_v4_simple(std::string_view text) {
  return text.size() == 32 && is_lower_hex(text) && text[12] == '4' &&
         std::string_view("89ab").find(text[16]) != std::string_view::npos;
}

class Promises {
 public:
  Promises(const Document& document, bool is_v1, Problems& problems)
      : doc_(document), is_v1_(is_v1), problems_(problems) {}

  void check() {
    check_head();
    check_times();
    check_indices();
    check_images();
    check_frames();
    check_threads();
  }

 private:
  void expect(bool holds, std::string_view rule, const std::string& pointer,
              std::string_view what) {
    if (!holds) problems_.add(rule, pointer, what);
  }
  void expect_id(std::string_view id, const std::string& pointer) {
    expect(is_uuid_v4_simple(id), "P1", pointer, "is no UUID v4 in 32 lower-case hex digits");
  }
  void expect_text(std::string_view text, const std::string& pointer) {
    expect(!text.empty(), "P2", pointer, "is missing or empty");
  }

  void check_head() {
    expect_text(doc_.platform, "/platform");
    expect_text(doc_.release, "/release");
    expect_text(doc_.environment, "/environment");
    expect(doc_.has_debug_meta, "P2", "/debug_meta", "is missing");
    expect(doc_.has_thread_metadata, "P2", "/profile/thread_metadata", "is missing");
    if (!is_v1_) {
      expect_id(doc_.chunk_id, "/chunk_id");
      expect_id(doc_.profiler_id, "/profiler_id");
      expect_text(doc_.sdk_name, "/client_sdk/name");
      expect_text(doc_.sdk_version, "/client_sdk/version");
      return;
    }
    expect_id(doc_.event_id, "/event_id");
    if (!doc_.transaction) return;
    expect_id(doc_.transaction->id, "/transaction/id");
    expect_id(doc_.transaction->trace_id, "/transaction/trace_id");
    check_active_thread();
  }

  void check_active_thread() {
    const auto active = doc_.transaction->active_thread_id;
    const std::string id = active ? std::to_string(*active) : "";
    const bool is_sampled = std::ranges::any_of(
        doc_.samples, [&](const CheckedSample& s) { return s.thread_id == id; });
    expect(is_sampled, "P6", "/transaction/active_thread_id", "is no thread with samples");
  }

  void check_times() {
    for (size_t i = 1; i < doc_.samples.size(); ++i) {
      const CheckedSample &a = doc_.samples[i - 1], &b = doc_.samples[i];
      const bool is_monotone =
          is_v1_ ? a.elapsed_ns <= b.elapsed_ns : a.unix_seconds <= b.unix_seconds;
      expect(is_monotone, "P3", sample(i), "is earlier than the sample before");
    }
    if (doc_.samples.empty()) return;
    if (is_v1_) {
      expect(doc_.samples.back().elapsed_ns <= 30'000'000'000, "P3", "/profile/samples",
             "last longer than 30 s");
    } else {
      const double span = doc_.samples.back().unix_seconds - doc_.samples.front().unix_seconds;
      expect(span <= 66, "P3", "/profile/samples", "last longer than 66 s");
    }
  }

  void check_indices() {
    std::vector<bool> frame_is_used(doc_.frames.size()), stack_is_used(doc_.stacks.size());
    for (size_t i = 0; i < doc_.samples.size(); ++i) {
      const uint64_t stack = doc_.samples[i].stack_id;
      expect(stack < doc_.stacks.size(), "P7", sample(i) + "/stack_id", "names no stack");
      if (stack < doc_.stacks.size()) stack_is_used[stack] = true;
    }
    for (size_t i = 0; i < doc_.stacks.size(); ++i) {
      expect(stack_is_used[i] || doc_.stacks[i].empty(), "P7", at("/profile/stacks", i),
             "is used by no sample");
      for (uint64_t frame : doc_.stacks[i]) {
        expect(frame < doc_.frames.size(), "P7", at("/profile/stacks", i), "names no frame");
        if (frame < doc_.frames.size()) frame_is_used[frame] = true;
      }
    }
    for (size_t i = 0; i < doc_.frames.size(); ++i) {
      expect(frame_is_used[i], "P7", at("/profile/frames", i), "is used by no stack");
    }
  }

  void check_images() {
    uint64_t free_from = 0;
    for (size_t i = 0; i < doc_.images.size(); ++i) {
      const CheckedImage& image = doc_.images[i];
      const std::string pointer = at("/debug_meta/images", i);
      const bool has_range =
          image.addr && image.vmaddr && image.size > 0 && *image.addr <= UINT64_MAX - image.size;
      expect(has_range, "P4", pointer, "has no address or no size");
      if (!has_range) continue;
      expect(*image.addr >= free_from, "P4", pointer, "overlaps the image before, or is unsorted");
      free_from = std::max(free_from, *image.addr + image.size);
      expect(image.type == "elf", "P4", pointer + "/type", "is not elf");
      expect(!image.code_file.empty(), "P4", pointer + "/code_file", "is missing or empty");
      expect(is_lower_hex(image.code_id), "P4", pointer + "/code_id", "is no lower-case hex");
      expect(image.debug_id.size() == 36 && is_lower_hex(without_dashes(image.debug_id)), "P4",
             pointer + "/debug_id", "is no hyphenated lower-case UUID");
      images_by_address_.emplace(*image.addr, i);
    }
  }

  void check_frames() {
    std::set<size_t> used;
    std::set<std::pair<uint64_t, std::string_view>> seen;
    for (size_t i = 0; i < doc_.frames.size(); ++i) {
      const CheckedFrame& frame = doc_.frames[i];
      const std::string pointer = at("/profile/frames", i);
      expect(!frame.function.empty(), "P5", pointer + "/function", "is missing or empty");
      const bool is_plain = frame.address && frame.address_text.substr(0, 2) == "0x" &&
                            is_lower_hex(frame.address_text.substr(2));
      expect(is_plain, "P5", pointer + "/instruction_addr", "is missing or no 0x number");
      if (!frame.address) continue;
      expect(seen.emplace(*frame.address, frame.function).second, "P5", pointer,
             "stands there twice");
      const auto image = image_at(*frame.address);
      if (image) used.insert(*image);
      const std::string_view file = image ? doc_.images[*image].code_file : "";
      const bool is_compiled = !image && frame.package == "[jit]";
      expect(frame.package == file || is_compiled, "P5", pointer + "/package",
             "is not the file of the image at instruction_addr");
    }
    for (size_t i = 0; i < doc_.images.size(); ++i) {
      expect(used.contains(i), "P4", at("/debug_meta/images", i), "holds no frame");
    }
  }

  void check_threads() {
    std::set<std::string, std::less<>> sampled;
    for (const CheckedSample& s : doc_.samples) sampled.insert(s.thread_id);
    std::set<std::string, std::less<>> described;
    for (const CheckedThread& thread : doc_.threads) {
      const std::string pointer = "/profile/thread_metadata/" + std::string(thread.id);
      expect(described.emplace(thread.id).second, "P6", pointer, "stands there twice");
      expect(sampled.contains(thread.id), "P6", pointer, "has no samples");
      expect(!thread.name.empty(), "P6", pointer + "/name", "is missing or empty");
      expect(!thread.has_priority, "P6", pointer + "/priority", "is written");
    }
    for (const std::string& id : sampled) {
      expect(described.contains(id), "P6", "/profile/thread_metadata", "lacks thread " + id);
      expect(parse_u64(id) && id[0] != '+', "P6", "/profile/samples", "thread id is no number");
    }
  }

  std::optional<size_t> image_at(uint64_t address) const {
    auto after = images_by_address_.upper_bound(address);
    if (after == images_by_address_.begin()) return std::nullopt;
    const auto [begin, index] = *std::prev(after);
    if (address - begin >= doc_.images[index].size) return std::nullopt;
    return index;
  }

  static std::string at(const std::string& pointer, size_t index) {
    return pointer + "/" + std::to_string(index);
  }
  static std::string sample(size_t index) { return at("/profile/samples", index); }
  static std::string without_dashes(std::string_view text) {
    std::string result(text);
    std::erase(result, '-');
    return result;
  }

  const Document& doc_;
  bool is_v1_;
  Problems& problems_;
  std::map<uint64_t, size_t> images_by_address_;
};

}  // namespace

void check_promises(const Document& document, ProfileKind kind, Problems& problems) {
  Promises(document, kind == ProfileKind::V1, problems).check();
}

}  // namespace sentry_prof::testing
