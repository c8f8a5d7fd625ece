// Times the judging of one V2 chunk in memory: validate_bench FILE RUNS. Beside each other in every
// run: a bare simdjson On-Demand pass over the fields that the server reads, our reader over the
// same fields, validate() whole. Prints the best CPU time of each, in seconds; both passes must
// have read the same.
#include "base/json_reader.h"
#include "sentry_prof/validate.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <simdjson.h>

using namespace sentry_prof;
namespace ondemand = simdjson::ondemand;

namespace {

// What a pass has read: the sum of all numbers and of the lengths of all strings.
using Sum = uint64_t;

Sum sum_of(double number) { return static_cast<Sum>(number * 1e6); }

// The fields come in the order in which the recorder writes them; this is simdjson's fastest way to
// such fields.

Sum simdjson_strings(ondemand::object object, std::initializer_list<std::string_view> keys) {
  Sum sum = 0;
  for (const std::string_view key : keys) sum += object.find_field(key).get_string().value().size();
  return sum;
}

Sum simdjson_images(ondemand::array images) {
  Sum sum = 0;
  for (ondemand::object image : images) {
    sum += simdjson_strings(image, {"type", "code_file", "code_id", "debug_id", "image_addr"});
    sum += image.find_field("image_size").get_uint64().value();
    sum += simdjson_strings(image, {"image_vmaddr", "arch"});
  }
  return sum;
}

Sum simdjson_samples(ondemand::array samples) {
  Sum sum = 0;
  for (ondemand::object sample : samples) {
    sum += sum_of(sample.find_field("timestamp").get_double().value());
    sum += sample.find_field("thread_id").get_string().value().size();
    sum += sample.find_field("stack_id").get_uint64().value();
  }
  return sum;
}

Sum simdjson_stacks(ondemand::array stacks) {
  Sum sum = 0;
  for (ondemand::array stack : stacks) {
    for (const uint64_t frame : stack) sum += frame;
  }
  return sum;
}

Sum simdjson_frames(ondemand::array frames) {
  Sum sum = 0;
  for (ondemand::object frame : frames) {
    sum += frame.find_field("function").get_string().value().size();
    sum += frame.find_field("instruction_addr").get_string().value().size();
    sum += frame.find_field("package").get_string().value().size();
  }
  return sum;
}

Sum simdjson_thread_names(ondemand::object threads) {
  Sum sum = 0;
  for (auto thread : threads) {
    sum += thread.unescaped_key().value().size();
    sum += thread.value().get_object().find_field("name").get_string().value().size();
  }
  return sum;
}

Sum simdjson_pass(ondemand::parser& parser, const simdjson::padded_string& text) {
  ondemand::document document = parser.iterate(text);
  ondemand::object chunk = document.get_object();
  Sum sum = simdjson_strings(
      chunk, {"version", "profiler_id", "chunk_id", "platform", "release", "environment"});
  sum += simdjson_strings(chunk.find_field("client_sdk").get_object(), {"name", "version"});
  sum += simdjson_images(chunk.find_field("debug_meta").find_field("images").get_array());
  ondemand::object profile = chunk.find_field("profile").get_object();
  sum += simdjson_samples(profile.find_field("samples").get_array());
  sum += simdjson_stacks(profile.find_field("stacks").get_array());
  sum += simdjson_frames(profile.find_field("frames").get_array());
  return sum + simdjson_thread_names(profile.find_field("thread_metadata").get_object());
}

void require(bool holds) {
  if (!holds) throw std::runtime_error("the chunk is not as chunk_text.py writes it");
}

class ReaderPass {
 public:
  explicit ReaderPass(std::string_view text) : reader_(text) {}

  Sum chunk() {
    begin_object();
    strings({"version", "profiler_id", "chunk_id", "platform", "release", "environment"});
    member("client_sdk");
    begin_object();
    strings({"name", "version"});
    end_object();
    member("debug_meta");
    images();
    member("profile");
    profile();
    end_object();
    return sum_;
  }

 private:
  void begin_object() {
    require(reader_.peek() == JsonKind::Object);
    reader_.begin_object();
  }
  void begin_array() {
    require(reader_.peek() == JsonKind::Array);
    reader_.begin_array();
  }
  void end_object() {
    JsonString key;
    require(!reader_.next_member(key) && !reader_.failed());
  }
  void member(std::string_view key) { require(reader_.next_member_is(key)); }
  void text(std::string_view key) {
    JsonString value;
    require(reader_.next_member_is(key) && reader_.try_string(value));
    sum_ += value.raw.size();
  }
  void strings(std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) text(key);
  }
  void whole(std::string_view key) {
    uint64_t value = 0;
    require(reader_.next_member_is(key) && reader_.try_unsigned(value));
    sum_ += value;
  }

  void images() {
    begin_object();
    member("images");
    begin_array();
    while (reader_.next_element()) {
      begin_object();
      strings({"type", "code_file", "code_id", "debug_id", "image_addr"});
      whole("image_size");
      strings({"image_vmaddr", "arch"});
      end_object();
    }
    end_object();
  }

  void samples() {
    begin_array();
    while (reader_.next_element()) {
      double timestamp_s = 0;
      begin_object();
      require(reader_.next_member_is("timestamp") && reader_.try_double(timestamp_s));
      sum_ += sum_of(timestamp_s);
      text("thread_id");
      whole("stack_id");
      end_object();
    }
  }

  void stacks() {
    uint64_t frame = 0;
    begin_array();
    while (reader_.next_element()) {
      begin_array();
      while (reader_.next_element()) {
        require(reader_.try_unsigned(frame));
        sum_ += frame;
      }
    }
  }

  void frames() {
    begin_array();
    while (reader_.next_element()) {
      begin_object();
      text("function");
      text("instruction_addr");
      text("package");
      end_object();
    }
  }

  void thread_names() {
    JsonString key;
    begin_object();
    while (reader_.next_member(key)) {
      sum_ += key.raw.size();
      begin_object();
      text("name");
      end_object();
    }
  }

  void profile() {
    begin_object();
    member("samples");
    samples();
    member("stacks");
    stacks();
    member("frames");
    frames();
    member("thread_metadata");
    thread_names();
    end_object();
  }

  JsonReader reader_;
  Sum sum_ = 0;
};

// CPU time of this thread: what others do on the machine meanwhile does not count.
double cpu_now_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Best {
  double seconds = 1e9;

  template <typename Work>
  auto time(Work&& work) {
    const double begin_s = cpu_now_s();
    auto result = work();
    seconds = std::min(seconds, cpu_now_s() - begin_s);
    return result;
  }
};

void measure(const char* path, int runs) {
  const simdjson::padded_string text = simdjson::padded_string::load(path);
  const std::string_view view(text.data(), text.size());
  ondemand::parser parser;
  Best bare, reader, whole;
  for (int run = 0; run < runs; ++run) {
    const Sum expected = bare.time([&] { return simdjson_pass(parser, text); });
    require(reader.time([&] { return ReaderPass(view).chunk(); }) == expected);
    const ValidationReport report = whole.time([&] { return validate(view); });
    if (!report.problems.empty())
      throw std::runtime_error("judged wrongly: " + report.problems[0].message);
  }
  fmt::print("bytes {}\nsimdjson_s {:.6f}\nreader_s {:.6f}\nvalidate_s {:.6f}\n", view.size(),
             bare.seconds, reader.seconds, whole.seconds);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    fmt::print(stderr, "usage: validate_bench FILE RUNS\n");
    return 2;
  }
  measure(argv[1], std::atoi(argv[2]));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "validate_bench: {}\n", error.what());
  return 1;
}
