#include "support/sentry_document.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace sentry_prof::testing {
namespace {

constexpr uint64_t kU32Max = UINT32_MAX;

class Reader {
 public:
  Reader(ProfileKind kind, ImageTypes image_types, Problems& problems, Document& document)
      : is_v1_(kind == ProfileKind::V1),
        image_types_(image_types),
        problems_(problems),
        doc_(document) {}

  void read(dom::object object) {
    Fields root(problems_, is_v1_ ? "B1" : "C1", object, "");
    read_minimal(root);
    if (problems_.json_is_refused || !doc_.version_is_right) return;
    is_v1_ ? read_v1_head(fields(object, "B")) : read_v2_head(fields(object, "C"));
    read_debug_meta(object);
    read_profile(object);
    read_measurements(object);
  }

 private:
  Fields fields(dom::object object, std::string rule, std::string pointer = {}) {
    return Fields(problems_, std::move(rule), object, std::move(pointer));
  }
  std::string rule(std::string_view v1, std::string_view v2) const {
    return std::string(is_v1_ ? v1 : v2);
  }
  static std::string_view or_empty(std::optional<std::string_view> text) {
    return text.value_or(std::string_view());
  }

  // What the server reads first, to find out which parser to take.
  void read_minimal(Fields& root) {
    if (is_v1_) doc_.event_id = or_empty(root.uuid("event_id", Need::Required, "profile_id"));
    doc_.platform = or_empty(root.text("platform", Need::Required));
    const auto version = root.text("version", Need::Optional);
    if (version && *version != "1" && *version != "2") {
      problems_.refuse(rule("B1", "C1"), "/version", "is neither \"1\" nor \"2\"");
    }
    doc_.version_is_right = version == (is_v1_ ? "1" : "2");
  }

  void read_v1_head(Fields root) {
    doc_.timestamp = or_empty(root.text("timestamp", Need::Required));
    if (!is_rfc3339(doc_.timestamp)) problems_.refuse("B4", "/timestamp", "is no RFC 3339 time");
    doc_.release = or_empty(root.text("release", Need::Nullable));
    doc_.environment = or_empty(root.text("environment", Need::Optional));
    root.text("dist", Need::Optional);
    read_device_and_os(root);
    if (auto runtime = root.object("runtime", Need::Nullable)) {
      runtime->text("name", Need::Required);
      runtime->text("version", Need::Required);
    }
    read_transactions(root);
  }

  void read_device_and_os(Fields& root) {
    bool has_all = true;
    const auto note = [&](bool is_there) { has_all = has_all && is_there; };
    if (auto device = root.object("device", Need::Required)) {
      device->text("architecture", Need::Required);
      note(device->boolean("is_emulator", Need::Nullable).has_value());
      for (const char* name : {"locale", "manufacturer", "model"}) {
        note(device->text(name, Need::Nullable).has_value());
      }
    }
    if (auto os = root.object("os", Need::Required)) {
      os->text("name", Need::Required);
      os->text("version", Need::Required);
      note(os->text("build_number", Need::Nullable).has_value());
    }
    doc_.has_all_cocoa_fields = has_all;
  }

  void read_transactions(Fields& root) {
    if (auto one = root.object("transaction", Need::Nullable)) {
      doc_.transaction = read_transaction(*one);
    }
    const auto several = root.array("transactions", Need::Optional);
    if (!several) return;
    for_each_object(*several, "B11", "/transactions", [&](Fields& each) {
      const CheckedTransaction read = read_transaction(each);
      if (!doc_.transaction) doc_.transaction = read;
    });
  }

  CheckedTransaction read_transaction(Fields& from) {
    CheckedTransaction result;
    result.id = or_empty(from.uuid("id", Need::Required));
    result.trace_id = or_empty(from.uuid("trace_id", Need::Required));
    result.name = or_empty(from.text("name", Need::Required));
    result.active_thread_id = from.number_or_string("active_thread_id", Need::Optional);
    result.relative_start_ns =
        from.number_or_string("relative_start_ns", Need::Optional).value_or(0);
    result.relative_end_ns = from.number_or_string("relative_end_ns", Need::Optional).value_or(0);
    from.number_or_string("relative_cpu_start_ms", Need::Optional);
    from.number_or_string("relative_cpu_end_ms", Need::Optional);
    from.uuid("segment_id", Need::Nullable);
    return result;
  }

  void read_v2_head(Fields root) {
    doc_.chunk_id = or_empty(root.uuid("chunk_id", Need::Required));
    doc_.profiler_id = or_empty(root.uuid("profiler_id", Need::Required));
    doc_.release = or_empty(root.text("release", Need::Nullable));
    doc_.environment = or_empty(root.text("environment", Need::Nullable));
    if (auto sdk = root.object("client_sdk", Need::Required)) {
      doc_.sdk_name = or_empty(sdk->text("name", Need::Required));
      doc_.sdk_version = or_empty(sdk->text("version", Need::Required));
    }
  }

  void read_debug_meta(dom::object object) {
    auto meta = fields(object, rule("B14", "C7"))
                    .object("debug_meta", is_v1_ ? Need::Nullable : Need::Optional);
    doc_.has_debug_meta = meta.has_value();
    if (!meta) return;
    const auto images = meta->array("images", Need::Required);
    if (!images) return;
    for_each_object(*images, "E1", "/debug_meta/images", [&](Fields& each) { read_image(each); });
  }

  void read_image(Fields& from) {
    static constexpr std::array kTypes = {"macho", "symbolic", "sourcemap", "proguard", "jvm"};
    CheckedImage image;
    image.type = or_empty(from.text("type", Need::Required));
    const bool is_elf_to_be_rewritten =
        image_types_ == ImageTypes::AsUploaded && image.type == "elf";
    if (!is_elf_to_be_rewritten && std::ranges::find(kTypes, image.type) == kTypes.end()) {
      problems_.refuse("E1", from.pointer() + "/type", "is no image type of profiles");
    }
    image.code_file = or_empty(from.text("code_file", Need::Nullable, "name"));
    image.debug_id = or_empty(from.text("debug_id", Need::Nullable, "id"));
    if (!image.debug_id.empty() && !is_debug_id(image.debug_id)) {
      problems_.refuse("E1", from.pointer() + "/debug_id", "is no debug id");
    }
    image.addr = from.address("image_addr", Need::Nullable);
    image.vmaddr = from.address("image_vmaddr", Need::Nullable);
    image.size = from.number_or_string("image_size", Need::Optional).value_or(0);
    from.uuid("uuid", Need::Nullable, "build_id");
    if (const auto id = from.value("code_id", Need::Nullable)) image.code_id = text_of(*id);
    if (const auto arch = from.value("arch", Need::Nullable)) image.arch = text_of(*arch);
    doc_.images.push_back(image);
  }

  void read_profile(dom::object object) {
    auto profile = fields(object, rule("B16", "C12")).object("profile", Need::Required);
    if (!profile) return;
    if (const auto samples = profile->array("samples", Need::Required)) {
      for_each_object(*samples, rule("B15", "C8"), "/profile/samples",
                      [&](Fields& each) { read_sample(each); });
    }
    if (const auto stacks = profile->array("stacks", Need::Required)) read_stacks(*stacks);
    if (const auto frames = profile->array("frames", Need::Required)) {
      for_each_object(*frames, "F1", "/profile/frames", [&](Fields& each) { read_frame(each); });
    }
    read_threads(*profile);
  }

  void read_sample(Fields& from) {
    CheckedSample sample;
    sample.stack_id = from.unsigned_number("stack_id", Need::Required, UINT64_MAX).value_or(0);
    if (is_v1_) {
      sample.thread_id =
          std::to_string(from.number_or_string("thread_id", Need::Required).value_or(0));
      sample.elapsed_ns =
          from.number_or_string("elapsed_since_start_ns", Need::Required).value_or(0);
      from.text("queue_address", Need::Nullable);
    } else {
      sample.thread_id = or_empty(from.text("thread_id", Need::Required));
      sample.unix_seconds = from.number("timestamp", Need::Required).value_or(0);
    }
    doc_.samples.push_back(std::move(sample));
  }

  void read_stacks(dom::array stacks) {
    for (dom::element element : stacks) {
      std::vector<uint64_t>& stack = doc_.stacks.emplace_back();
      const std::string pointer = "/profile/stacks/" + std::to_string(doc_.stacks.size() - 1);
      dom::array indices;
      if (element.get(indices) != simdjson::SUCCESS) {
        problems_.refuse(rule("B16", "C12"), pointer, "is no array");
        continue;
      }
      for (dom::element index : indices) {
        uint64_t value = 0;
        if (index.type() == dom::element_type::DOUBLE || index.get(value) != simdjson::SUCCESS) {
          problems_.refuse(rule("B16", "C12"), pointer, "holds something else than frame indices");
        }
        stack.push_back(value);
      }
    }
  }

  void read_frame(Fields& from) {
    CheckedFrame frame;
    frame.function = or_empty(from.text("function", Need::Nullable, "name"));
    frame.package = or_empty(from.text("package", Need::Nullable));
    frame.address = from.address("instruction_addr", Need::Nullable);
    if (frame.address) frame.address_text = or_empty(from.text("instruction_addr", Need::Nullable));
    from.text("abs_path", Need::Nullable);
    from.text("filename", Need::Nullable, "file");
    from.text("module", Need::Nullable);
    from.text("platform", Need::Nullable);
    from.unsigned_number("colno", Need::Nullable, kU32Max, "column");
    from.unsigned_number("lineno", Need::Nullable, kU32Max, "line");
    from.boolean("in_app", Need::Nullable);
    doc_.frames.push_back(frame);
  }

  void read_threads(Fields& profile) {
    const auto metadata =
        profile.value("thread_metadata", is_v1_ ? Need::Nullable : Need::Optional);
    doc_.has_thread_metadata = metadata.has_value();
    if (metadata) {
      for_each_member(*metadata, rule("B17", "C9"), [&](std::string_view id, Fields& each) {
        CheckedThread thread;
        thread.id = id;
        thread.name = or_empty(each.text("name", Need::Nullable));
        thread.has_priority = each.unsigned_number("priority", Need::Nullable, kU32Max).has_value();
        doc_.threads.push_back(thread);
      });
    }
    if (!is_v1_) return;
    if (const auto queues = profile.value("queue_metadata", Need::Nullable)) {
      for_each_member(*queues, "B18",
                      [](std::string_view, Fields& each) { each.text("label", Need::Required); });
    }
  }

  void read_measurements(dom::object object) {
    const auto all = fields(object, rule("B19", "C10"))
                         .value("measurements", is_v1_ ? Need::Nullable : Need::Optional);
    if (!all) return;
    for_each_member(*all, rule("B19", "C10"), [&](std::string_view, Fields& each) {
      static constexpr std::array kUnits = {"nanosecond", "ns",      "hertz",     "hz",
                                            "byte",       "percent", "nanojoule", "nj"};
      const auto unit = each.text("unit", Need::Required);
      if (unit && std::ranges::find(kUnits, *unit) == kUnits.end()) {
        problems_.refuse(rule("B19", "C10"), each.pointer() + "/unit", "is no unit");
      }
      const auto values = each.array("values", Need::Required);
      if (!values) return;
      for_each_object(*values, rule("B19", "C10"), each.pointer() + "/values", [&](Fields& value) {
        if (is_v1_) {
          value.number_or_string("elapsed_since_start_ns", Need::Required);
        } else {
          value.number("timestamp", Need::Required);
        }
        if (const auto v = value.value("value", Need::Required); v && !v->element.is_string()) {
          value.number("value", Need::Required);
        }
      });
    });
  }

  template <typename Visit>
  void for_each_object(dom::array array, const std::string& rule_name, const std::string& pointer,
                       Visit visit) {
    size_t index = 0;
    for (dom::element element : array) {
      const std::string here = pointer + "/" + std::to_string(index++);
      dom::object object;
      if (element.get(object) == simdjson::SUCCESS) {
        Fields each = fields(object, rule_name, here);
        visit(each);
      } else {
        problems_.refuse(rule_name, here, "is no object");
      }
    }
  }

  template <typename Visit>
  void for_each_member(const Value& map, const std::string& rule_name, Visit visit) {
    dom::object members;
    if (map.element.get(members) != simdjson::SUCCESS) {
      problems_.refuse(rule_name, map.pointer, "is no object");
      return;
    }
    for (auto member : members) {
      const std::string here = map.pointer + "/" + std::string(member.key);
      dom::object object;
      if (member.value.get(object) == simdjson::SUCCESS) {
        Fields each = fields(object, rule_name, here);
        visit(member.key, each);
      } else {
        problems_.refuse(rule_name, here, "is no object");
      }
    }
  }

  static std::string_view text_of(const Value& value) {
    std::string_view text;
    return value.element.get(text) == simdjson::SUCCESS ? text : std::string_view("(no string)");
  }

  // 2026-01-15T12:00:00[.fraction](Z|+hh:mm); a space may stand for the T.
  static bool is_rfc3339(std::string_view text) {
    static constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
    if (text.size() <= kForm.size()) return false;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    for (size_t i = 0; i < kForm.size(); ++i) {
      const char c = text[i];
      if (kForm[i] == 'd' && !is_digit(c)) return false;
      if (kForm[i] == 'T' && c != 'T' && c != 't' && c != ' ') return false;
      if ((kForm[i] == '-' || kForm[i] == ':') && c != kForm[i]) return false;
    }
    if (!is_calendar_time(text)) return false;
    std::string_view rest = text.substr(kForm.size());
    if (rest.front() == '.') {
      const size_t end = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
      if (end == 1) return false;
      rest.remove_prefix(end);
    }
    if (rest == "Z" || rest == "z") return true;
    return rest.size() == 6 && (rest[0] == '+' || rest[0] == '-') && is_digit(rest[1]) &&
           is_digit(rest[2]) && rest[3] == ':' && is_digit(rest[4]) && is_digit(rest[5]);
  }

  static bool is_calendar_time(std::string_view text) {
    const auto part = [&](size_t at, size_t n) { return *parse_u64(text.substr(at, n)); };
    const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(part(0, 4))),
                                           std::chrono::month(static_cast<unsigned>(part(5, 2))),
                                           std::chrono::day(static_cast<unsigned>(part(8, 2)))};
    return date.ok() && part(11, 2) < 24 && part(14, 2) < 60 && part(17, 2) <= 60;
  }

  bool is_v1_;
  ImageTypes image_types_;
  Problems& problems_;
  Document& doc_;
};

}  // namespace

Document read_document(dom::object root, ProfileKind kind, ImageTypes image_types,
                       Problems& problems) {
  Document document;
  Reader(kind, image_types, problems, document).read(root);
  return document;
}

}  // namespace sentry_prof::testing
